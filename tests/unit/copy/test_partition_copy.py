"""Positions follow acknowledgements, never fetches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch
from sparkmirror.batches.records import halve
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import FetchFailed, Start, WriteFailed
from sparkmirror.copy.write_strategy import WriteStrategy
from sparkmirror.domain.errors import CorruptBatchError, FencedError, KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import source_recreated
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.progress import PartitionState
from tests.support.batches import NOW_MS, Rec, encode, joined, marker

SOURCE = TopicPartition("t", 3)
BEGUN = ProducerState(ProducerId(7, 0), 0, 500)


def partition_copy(
    position: int = 0, *, read_committed: bool = False, bytes_max: int = 1 << 20
) -> PartitionCopy:
    rules = CopyRules(batch_bytes_max=bytes_max)
    copy = PartitionCopy(CopyPartition(SOURCE, "s.t"), rules, read_committed=read_committed)
    copy.begin(Start(position, BEGUN), WriteStrategy())
    return copy


def fetched(*batches: bytearray, aborted: list[tuple[int, int]] | None = None) -> FetchedPartition:
    return FetchedPartition(SOURCE, 0, 100, 100, 0, aborted or [], -1, joined(batches))


def batch(base_offset: int, count: int = 2, **header: int) -> bytearray:
    return encode(map(Rec, range(count)), base_offset=base_offset, **header)


def acknowledge(copy: PartitionCopy, outgoing: OutgoingBatch, *, completes: bool = True) -> None:
    assert copy.producer is not None
    copy.acknowledged(outgoing, copy.producer.next_offset, NOW_MS + 3, completes=completes)


def test_the_position_waits_for_the_acknowledgement() -> None:
    copy = partition_copy()
    first, second = copy.take(fetched(batch(0), batch(2)))
    assert (copy.position, copy.fetch_position) == (0, 4)
    acknowledge(copy, first)
    assert (copy.position, copy.last_replicated) == (2, 1)
    acknowledge(copy, second)
    assert (copy.position, copy.last_replicated) == (4, 3)


def test_an_incident_that_does_not_repeat_is_reported_once() -> None:
    copy = partition_copy()
    for offset in (5, 6):
        copy.note(source_recreated(offset, 0), repeats=False)
    assert (copy.notice, copy.incidents.total()) == (source_recreated(5, 0).text, 1)
    copy.note(source_recreated(7, 0))
    assert (copy.notice, copy.incidents.total()) == (source_recreated(7, 0).text, 2)


def test_sequences_continue_at_0_after_the_largest() -> None:
    copy = partition_copy()
    copy.begin(Start(0, BEGUN._replace(next_sequence=SEQUENCE_MODULUS - 3)), WriteStrategy())
    first, second = copy.take(fetched(batch(0), batch(2, 5)))
    acknowledge(copy, first)
    assert copy.producer == ProducerState(BEGUN.producer, SEQUENCE_MODULUS - 1, 502)
    acknowledge(copy, second)
    assert copy.producer == ProducerState(BEGUN.producer, 4, 507)


def test_no_more_is_taken_than_there_is_room_for_and_the_rest_comes_with_the_next_fetch() -> None:
    copy = partition_copy()
    response = [batch(0), batch(2), batch(4)]
    assert list(copy.take(fetched(*response), 0)) == []
    assert copy.fetch_position == 0
    taken = list(copy.take(fetched(*response), len(response[0]) + 1))
    assert [outgoing.offsets for outgoing in taken] == [range(2), range(2, 4)]
    assert (copy.fetch_position, copy.outstanding_bytes) == (4, 2 * len(response[0]))
    (rest,) = copy.take(fetched(*response), 1)
    assert (rest.offsets, copy.fetch_position) == (range(4, 6), 6)


def test_what_is_outstanding_is_counted_in_bytes() -> None:
    copy = partition_copy()
    batches = list(copy.take(fetched(batch(0), batch(2, 5))))
    assert copy.outstanding_bytes == sum(len(outgoing.data) for outgoing in batches)
    for outgoing in batches:
        acknowledge(copy, outgoing)
    assert copy.outstanding_bytes == 0
    assert (copy.records, copy.bytes) == (7, sum(len(outgoing.data) for outgoing in batches))


def test_nothing_to_copy_moves_the_position_at_once_when_nothing_is_outstanding() -> None:
    copy = partition_copy()
    assert list(copy.take(fetched(marker(0, 5, commit=True)))) == []
    assert (copy.position, copy.fetch_position) == (1, 1)


def test_nothing_to_copy_waits_for_what_is_before_it() -> None:
    copy = partition_copy()
    (outgoing,) = copy.take(fetched(batch(0), marker(2, 5, commit=True), marker(3, 6, commit=True)))
    assert (copy.position, copy.fetch_position) == (0, 4)
    acknowledge(copy, outgoing)
    assert copy.position == 4


def test_aborted_batches_are_passed_like_markers() -> None:
    copy = partition_copy(read_committed=True)
    transactional = batch(2, attributes=0x10, producer_id=5)
    response = fetched(batch(0), transactional, marker(4, 5, commit=False), aborted=[(5, 2)])
    (outgoing,) = copy.take(response)
    acknowledge(copy, outgoing)
    assert copy.position == 5


def test_a_source_batch_that_became_several_counts_as_far_as_they_arrived() -> None:
    copy = partition_copy(position=1, bytes_max=75)
    batches = list(copy.take(fetched(batch(0, 4))))
    assert [list(outgoing.offsets) for outgoing in batches] == [[1], [2], [3]]
    for outgoing, position in zip(batches, (2, 3, 4), strict=True):
        acknowledge(copy, outgoing)
        assert copy.position == position


def test_a_refused_half_does_not_bring_the_other_half_again() -> None:
    """One record of a batch is too large for the target: those before it are copied once."""
    copy = partition_copy()
    (outgoing,) = copy.take(fetched(batch(0, 4)))
    first, _second = halve(outgoing)
    acknowledge(copy, first, completes=False)
    copy.discard()
    assert (copy.position, copy.fetch_position, copy.outstanding_bytes) == (2, 2, 0)
    (again,) = copy.take(fetched(batch(0, 4)))
    assert list(again.offsets) == [2, 3]


def test_discarding_goes_back_to_what_is_not_acknowledged() -> None:
    copy = partition_copy()
    first, *_ = copy.take(fetched(batch(0), batch(2), marker(4, 5, commit=True)))
    acknowledge(copy, first)
    copy.discard()
    assert (copy.position, copy.fetch_position, copy.outstanding_bytes) == (2, 2, 0)


def test_a_source_batch_that_became_several_is_dropped_from_its_middle_on() -> None:
    copy = partition_copy(position=1, bytes_max=75)
    first, second, third = copy.take(fetched(batch(0, 4)))
    assert copy.drop_unsent(lambda _: 2) == len(second.data) + len(third.data)
    assert copy.fetch_position == 2
    again = list(copy.take(fetched(batch(0, 4))))
    assert [list(outgoing.offsets) for outgoing in again] == [[2], [3]]
    acknowledge(copy, first)
    assert copy.position == 2


def test_a_bad_batch_stops_on_itself_after_what_came_before() -> None:
    copy = partition_copy()
    steps = copy.take(fetched(batch(0), batch(2, magic=1), batch(4)))
    first = next(steps)
    with pytest.raises(CorruptBatchError, match="offset 2"):
        next(steps)
    assert copy.fetch_position == 2
    acknowledge(copy, first)
    assert copy.position == 2


def test_before_the_first_record_there_is_no_position() -> None:
    assert partition_copy().last_replicated is None
    assert partition_copy(position=1).last_replicated == 0


def test_lag_counts_from_the_position() -> None:
    copy = partition_copy(position=3)
    assert copy.lag_from(copy.position) is None
    copy.end_offset = 10
    assert copy.lag_from(copy.position) == 7
    copy.end_offset = 2
    assert copy.lag_from(copy.position) == 0


def test_latency_is_that_of_the_newest_record_for_every_record() -> None:
    copy = partition_copy()
    (outgoing,) = copy.take(fetched(batch(0, 5)))
    acknowledge(copy, outgoing)
    assert copy.latency.total == 5
    assert copy.latency.quantile(0.5) == pytest.approx(3, rel=0.08)


def test_its_state_says_whether_time_may_heal() -> None:
    copy = partition_copy()
    states = [copy.reported_state]
    copy.step(FetchFailed(RetriableError("leader moved")), 0.0)
    states.append(copy.reported_state)
    copy.step(WriteFailed(KafkaError("too large")), 0.0)
    states.append(copy.reported_state)
    assert states == [PartitionState.RUNNING, PartitionState.RETRYING, PartitionState.FAILED]
    assert copy.error is copy.state.write_error


def test_who_is_fenced_needs_nobody() -> None:
    copy = partition_copy()
    copy.step(WriteFailed(FencedError("another task has claimed it", INVALID_PRODUCER_EPOCH)), 0.0)
    assert copy.reported_state is PartitionState.RETRYING


@given(
    log=st.lists(st.tuples(st.booleans(), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=12),
    moves=st.lists(
        st.sampled_from(["take", "acknowledge", "acknowledge", "discard", "drop last"]), max_size=60
    ),
)
def test_the_position_is_never_ahead_of_the_acknowledgements(
    log: list[tuple[bool, int, int]], moves: list[str]
) -> None:
    """Whatever happens in whatever order, everything before the position arrived, in order."""
    batches: list[tuple[int, bytearray]] = []
    records: list[int] = []
    offset = 0
    for is_marker, count, gap in log:
        offset += gap
        batches.append((offset, marker(offset, 5, commit=True) if is_marker else batch(offset, count)))
        records += [] if is_marker else range(offset, offset + count)
        offset += 1 if is_marker else count
    copy = partition_copy()
    arrived: list[int] = []
    outstanding: list[OutgoingBatch] = []
    for move in moves:
        if move == "take":
            later = [data for base, data in batches if base >= copy.fetch_position]
            outstanding += copy.take(fetched(*later[:2]))
        elif move == "acknowledge" and outstanding:
            outgoing = outstanding.pop(0)
            arrived += outgoing.offsets
            acknowledge(copy, outgoing)
        elif move == "discard":
            copy.discard()
            outstanding.clear()
        elif move == "drop last" and outstanding:
            assert copy.drop_unsent(lambda _: 1) == len(outstanding.pop().data)
        assert arrived == [record for record in records if record < copy.position]
        assert copy.fetch_position >= copy.position
        assert copy.outstanding_bytes == sum(len(outgoing.data) for outgoing in outstanding)
