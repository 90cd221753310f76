"""How batches of one partition are numbered, and numbered anew where a transaction has another epoch."""

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import TRANSACTIONAL, OutgoingBatch, has_valid_crc, iterate_batches
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.partition_queue import PartitionQueue
from sparkmirror.kafka.wire import NO_TOPIC_ID
from tests.support.batches import Rec, encode

FIRST = ProducerId(7, 0)


def lane_with(*counts: int) -> PartitionQueue:
    lane = PartitionQueue(TopicPartition("orders", 0))
    lane.begin(ProducerState(FIRST, 0, 0), NO_TOPIC_ID, now=0.0)
    for count in counts:
        data = memoryview(bytearray(encode([Rec(at, 1000) for at in range(count)])))
        lane.append(OutgoingBatch(data, range(count), 0))
    return lane


def stamped(lane: PartitionQueue, *, transactional: bool) -> list[tuple[int, int, bool]]:
    """Epoch, sequence and transactional bit of what waits."""
    found = []
    for pending in lane.ready:
        assert lane.producer is not None
        (batch,) = iterate_batches(pending.stamped_by(lane.producer, transactional=transactional))
        assert has_valid_crc(batch)
        header = batch.header
        found.append((header.producer_epoch, header.base_sequence, bool(header.attributes & TRANSACTIONAL)))
    return found


def test_what_waits_is_numbered_anew_even_if_it_was_sent_and_refused_before() -> None:
    lane = lane_with(3, 1, 2)
    assert stamped(lane, transactional=True) == [(0, 0, True), (0, 3, True), (0, 4, True)]
    lane.ready.popleft()
    lane.proven = True
    lane.renumber(FIRST.next_epoch())
    assert stamped(lane, transactional=True) == [(1, 0, True), (1, 1, True)]
    assert (lane.next_sequence, lane.proven, lane.in_flight_max) == (3, False, 1)


def test_without_transactions_no_batch_has_their_bit() -> None:
    assert stamped(lane_with(2, 2), transactional=False) == [(0, 0, False), (0, 2, False)]


def test_a_half_is_as_doubtful_as_the_whole() -> None:
    lane = lane_with(2)
    assert not lane.is_doubtful
    lane.ready[0].is_doubtful = True
    assert lane.split_first()
    assert [pending.is_doubtful for pending in lane.ready] == [True, True]
