"""Cycle detection by producer ids and by the names of remote topics."""

import pytest

from sparkmirror.batches.columns import headers_of
from sparkmirror.batches.cycles import (
    CycleError,
    CycleFilter,
    KnownWriters,
    UnknownWriterError,
    names_show_origin,
)
from sparkmirror.batches.record_batch import BatchHeader, FetchedBatch
from sparkmirror.domain.incidents import OnLoop
from sparkmirror.policies.replication import (
    CustomMM2ReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from tests.support.batches import Rec, encode, fetched

OURS, OTHERS, UNKNOWN, NO_PRODUCER = 7, 8, 9, -1


@pytest.fixture
def writers() -> KnownWriters:
    known = KnownWriters()
    known.learn([OURS], [OTHERS])
    return known


def batch(producer_id: int, first: int = 0, count: int = 1) -> FetchedBatch:
    records = [Rec(number) for number in range(count)]
    return fetched(encode(records, producer_id=producer_id, base_offset=first))


def header(producer_id: int, first: int = 0, count: int = 1) -> BatchHeader:
    return batch(producer_id, first, count).header


@pytest.mark.parametrize(
    ("policy", "is_shown"),
    [
        (DefaultReplicationPolicy(), True),
        (DefaultReplicationPolicy(separator="_"), True),
        (IdentityReplicationPolicy(source_alias="A"), False),
        (CustomMM2ReplicationPolicy(source_alias="A"), False),
    ],
)
def test_names_show_origin_under_default_policies_only(policy: ReplicationPolicy, *, is_shown: bool) -> None:
    assert names_show_origin(policy, "A") is is_shown


def test_filter_counts_dropped_records(writers: KnownWriters) -> None:
    tested = CycleFilter(writers)
    assert [tested.drops(header(OTHERS)), tested.drops(header(NO_PRODUCER))] == [False, False]
    assert (tested.records, tested.first) == (0, None)
    assert tested.drops(header(OURS, 5, 3))
    assert tested.drops(header(OURS, 9, 2))
    assert (tested.records, tested.first) == (5, (5, 7))


def test_unknown_producer_id_must_be_looked_up(writers: KnownWriters) -> None:
    with pytest.raises(UnknownWriterError) as raised:
        CycleFilter(writers).drops(header(UNKNOWN))
    assert raised.value.producer_id == UNKNOWN
    assert writers.unknown([OURS, OTHERS, UNKNOWN, NO_PRODUCER]) == {UNKNOWN}


def test_filter_raises_an_error_if_configured(writers: KnownWriters) -> None:
    tested = CycleFilter(writers, OnLoop.FAIL)
    assert not tested.drops(header(OTHERS))
    with pytest.raises(CycleError) as raised:
        tested.drops(header(OURS, 5, 3))
    assert raised.value.offsets == (5, 7)
    assert tested.records == 0


def test_many_headers_are_filtered_at_once(writers: KnownWriters) -> None:
    tested = CycleFilter(writers)
    kept = tested.keeps(headers_of([batch(OTHERS), batch(OURS, 1, 2), batch(NO_PRODUCER, 3), batch(OURS, 4)]))
    assert kept is not None
    assert kept.tolist() == [True, False, True, False]
    assert (tested.records, tested.first) == (3, (1, 2))
    kept = tested.keeps(headers_of([batch(OTHERS), batch(NO_PRODUCER, 1)]))
    assert kept is not None
    assert kept.all()
    assert tested.keeps(headers_of([batch(OTHERS), batch(UNKNOWN, 1)])) is None
    assert CycleFilter(writers, OnLoop.FAIL).keeps(headers_of([batch(OURS)])) is None


def test_producer_ids_recorded_later_are_recognized(writers: KnownWriters) -> None:
    writers.learn([OTHERS])
    assert writers.are_from_target(OTHERS) is True
    writers.learn([UNKNOWN], [UNKNOWN])
    assert writers.are_from_target(UNKNOWN) is True


def test_number_of_remembered_producer_ids_is_limited() -> None:
    writers = KnownWriters(others_max=3)
    writers.learn([OURS], [OTHERS])
    writers.learn([], [20, 21])
    assert writers.unknown([OTHERS, 20, 21]) == {OTHERS}
    assert writers.are_from_target(NO_PRODUCER) is False
    assert writers.are_from_target(OURS) is True
