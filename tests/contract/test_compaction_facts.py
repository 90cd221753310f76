"""Shows how brokers leave compacted batches; the cleaner of clusters in memory must do the same."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final, NamedTuple

import pytest

from sparkmirror.batches.filler import filler_batch
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.plan.backlog import Backlog
from sparkmirror.plan.holes import estimated_holes
from tests.memory.compaction import compact
from tests.memory.server import MemoryServer
from tests.support.any_cluster import AnyCluster
from tests.support.batches import Rec, decode, encode
from tests.support.broker_data import append, create_topic, numbered
from tests.support.broker_requests import asking, stored_batches
from tests.support.connections import connection
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

TOPIC: Final = "contract.compacted"
PARTITION: Final = TopicPartition(TOPIC, 0)
WAIT_S: Final = 60.0
SEGMENT_MS: Final = 1000
CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.ms": str(SEGMENT_MS),
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
}
FIRST, SECOND, NOBODY = 4711, 4712, -1

FILLED: Final = TopicPartition("contract.compacted.filled", 0)
HOLES: Final = range(1, 20_001)
"""Filled with keyed records, as a gap of a compacted topic could be."""

WRITTEN: Final = (
    (FIRST, 0, "abc"),
    (SECOND, 0, "de"),
    (NOBODY, -1, "fg"),
    (FIRST, 3, "xby"),
    (NOBODY, -1, "fgde"),
    (NOBODY, -1, "z"),
)
"""The batches, as producer, sequence and keys; the last one is in the active segment."""
SUPERSEDED: Final = {1, 3, 4, 5, 6}
"""Offsets of records whose keys come again later."""


class Kept(NamedTuple):
    base_offset: int
    last_offset: int
    left: int
    producer: int
    sequence: int
    records: list[tuple[int, bytes | None]]


@pytest.fixture(
    scope="module", params=[pytest.param("memory_cluster", marks=pytest.mark.memory), "frail_cluster"]
)
def cluster(request: pytest.FixtureRequest) -> AnyCluster:
    made: AnyCluster = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="module")
def filled(cluster: AnyCluster) -> None:
    """A log whose holes take filler under one key, between two records, and which is cleaned."""
    create_topic(cluster.bootstrap_servers, FILLED.topic, config=CONFIG)
    filler = filler_batch(HOLES.start, len(HOLES), ProducerId(FIRST, 0), keyed=True)
    last = encode([Rec(0, int(time.time() * 1000), b"z", b"0")], producer_id=NOBODY, producer_epoch=-1)
    with asking(cluster) as asker:
        for batch in (_single(b"a"), filler.data, _single(b"b"), last):
            assert asker.produce_one(FILLED, batch).error == 0
    if isinstance(cluster, MemoryServer):
        log = cluster.cluster.log(FILLED)
        cluster.call(lambda: compact(log, HOLES.stop + 1))


def _single(key: bytes) -> bytearray:
    """Old, so that the next one is in another segment."""
    at_ms = int(time.time() * 1000) - 20 * SEGMENT_MS
    return encode([Rec(0, at_ms, key, b"0")], producer_id=NOBODY, producer_epoch=-1)


@pytest.fixture(scope="module")
def kept(cluster: AnyCluster, filled: None) -> list[Kept]:
    create_topic(cluster.bootstrap_servers, TOPIC, config=CONFIG)
    with asking(cluster) as asker:
        for batch in _batches():
            assert asker.produce_one(PARTITION, batch).error == 0
    if isinstance(cluster, MemoryServer):
        log = cluster.cluster.log(PARTITION)
        cluster.call(lambda: compact(log, log.batches[-1].base_offset))
    return await_value(
        lambda: found if _is_cleaned(found := _kept(cluster)) else None,
        WAIT_S,
        lambda: str(_kept(cluster)),
    )


def _is_cleaned(kept: list[Kept]) -> bool:
    """The cleaner may have run before the last batches came, and then cleans once more."""
    return SUPERSEDED.isdisjoint(offset for batch in kept for offset, _ in batch.records)


def _batches() -> Iterator[bytearray]:
    """Each in a segment of its own: its records are more than `segment.ms` younger."""
    begin_ms = int(time.time() * 1000) - 20 * SEGMENT_MS * len(WRITTEN)
    for number, (producer, sequence, keys) in enumerate(WRITTEN):
        at_ms = begin_ms + 20 * SEGMENT_MS * number
        records = [Rec(at, at_ms, key.encode(), b"%d" % number) for at, key in enumerate(keys)]
        epoch = -1 if producer == NOBODY else 0
        yield encode(records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def _kept(cluster: AnyCluster) -> list[Kept]:
    return [_described(batch) for batch in stored_batches(cluster, TOPIC)]


def _described(batch: FetchedBatch) -> Kept:
    header = batch.header
    records = [(record.offset, record.key) for record in decode(batch.data)] if header.record_count else []
    return Kept(
        header.base_offset,
        header.last_offset,
        header.record_count,
        header.producer_id,
        header.base_sequence,
        records,
    )


def test_a_batch_that_lost_records_keeps_its_first_and_last_offset_and_its_sequence(kept: list[Kept]) -> None:
    assert kept[0] == Kept(0, 2, 2, FIRST, 0, [(0, b"a"), (2, b"c")])


def test_the_last_batch_of_a_producer_is_kept_without_records(kept: list[Kept]) -> None:
    assert kept[1] == Kept(3, 4, 0, SECOND, 0, [])


def test_another_batch_that_lost_all_records_is_gone(kept: list[Kept]) -> None:
    assert [batch.base_offset for batch in kept] == [0, 3, 7, 10, 14]


def test_batches_that_lost_nothing_stay_as_they_are(kept: list[Kept]) -> None:
    assert kept[2] == Kept(7, 9, 3, FIRST, 3, [(7, b"x"), (8, b"b"), (9, b"y")])
    assert kept[3].left == 4
    assert kept[4] == Kept(14, 14, 1, NOBODY, -1, [(14, b"z")])


@pytest.mark.usefixtures("kept")
def test_the_last_filler_of_a_hole_is_kept_and_consumers_see_it(cluster: AnyCluster) -> None:
    """The newest record of a key stays, so consumers would see filler in the place of holes."""

    def seen() -> list[tuple[int, bytes | None]]:
        with TopicReader(cluster.bootstrap_servers, FILLED.topic) as reader:
            return [(record.offset() or 0, record.key()) for record in reader.read(0)]

    left = [(0, b"a"), (HOLES.stop - 1, b""), (HOLES.stop, b"b"), (HOLES.stop + 1, b"z")]
    await_value(lambda: seen() == left, WAIT_S, lambda: f"{len(seen())} records are left")
    assert sum(len(batch.data) for batch in stored_batches(cluster, FILLED.topic)) < 2 * len(HOLES)


@pytest.mark.usefixtures("kept")
def test_a_plan_counts_the_offsets_without_records(cluster: AnyCluster) -> None:
    settings, plain = connection(cluster), TopicPartition("contract.plain", 0)
    create_topic(cluster.bootstrap_servers, plain.topic)
    append(cluster, plain.topic, numbered(15))
    left = Backlog(begins={PARTITION: 0, plain: 0}, ends={PARTITION: 15, plain: 15})
    with closing(Admin(settings)) as admin:
        found = estimated_holes(admin, ConsumerSettings(settings), [TOPIC, plain.topic], left)
    assert found == {PARTITION: len(SUPERSEDED)}
