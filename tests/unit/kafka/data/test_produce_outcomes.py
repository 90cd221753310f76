"""A failed Produce has an effect on a partition's queue, by the broker's error and what may be in the log."""

import pytest

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_queue import PartitionQueue, QueuePhase
from sparkmirror.kafka.data.produce_outcomes import Next, ProduceOutcomes
from sparkmirror.kafka.data.written_batches import Written
from sparkmirror.kafka.wire import error_codes
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID
from tests.support.batches import Rec, encode

REFUSED = error_codes.error_for(error_codes.TOPIC_AUTHORIZATION_FAILED, "produce")
RETRIED = error_codes.error_for(error_codes.NOT_LEADER_OR_FOLLOWER, "produce")
TOO_LARGE = error_codes.error_for(error_codes.MESSAGE_TOO_LARGE, "produce")
UNORDERED = error_codes.error_for(error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER, "produce")
COMPLETING = error_codes.error_for(error_codes.CONCURRENT_TRANSACTIONS, "produce")
ENDED = error_codes.error_for(error_codes.INVALID_TXN_STATE, "produce")
LOST = DisconnectedError("connection lost")


def sent(*counts: int, in_flight: int = 1) -> PartitionQueue:
    """A queue with batches of so many records, the first of which are in flight."""
    queue = PartitionQueue(TopicPartition("orders", 0))
    queue.number(ProducerState(ProducerId(7, 0), 0, 0), NO_TOPIC_ID, now=0.0)
    for count in counts:
        data = memoryview(bytearray(encode([Rec(at, 1000) for at in range(count)])))
        queue.append(OutgoingBatch(data, range(count), 0))
    for _ in range(in_flight):
        queue.take()
    return queue


def sizes(queue: PartitionQueue) -> list[int]:
    return [len(pending.batch.offsets) for pending in queue.ready]


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize(
    ("error", "expected", "phase", "left"),
    [
        (RETRIED, Next.RETRY, QueuePhase.BACKING_OFF, [1, 2]),
        (UNORDERED, Next.GIVE_UP, QueuePhase.CLOSED, []),
        (REFUSED, Next.REFUSE, QueuePhase.SENDING, []),
        (TOO_LARGE, Next.REFUSE, QueuePhase.SENDING, []),
    ],
)
def test_the_error_decides_how_the_queue_continues(
    error: SparkmirrorError, expected: Next, phase: QueuePhase, left: list[int], transactional: bool
) -> None:
    outcomes, queue = ProduceOutcomes(transactional=transactional), sent(1, 2)
    outcome = outcomes.failed(queue, error)
    assert outcome is not None
    assert (outcome.next, outcome.error) == (expected, error)
    assert (queue.phase, sizes(queue)) == (phase, left)
    assert (outcome.refused is not None) == (expected is Next.REFUSE)
    assert outcomes.is_settled


def test_a_batch_that_is_too_large_is_halved_and_sent_at_once() -> None:
    queue = sent(4, 1)
    outcome = ProduceOutcomes(transactional=False).failed(queue, TOO_LARGE)
    assert outcome is not None
    assert outcome.next is Next.SEND
    assert sizes(queue) == [2, 2, 1]


def test_a_batch_that_can_not_be_halved_is_refused_with_the_reason() -> None:
    queue = sent(4)
    queue.in_flight[0].batch.data[61:] = bytes(len(queue.in_flight[0].batch.data) - 61)
    outcome = ProduceOutcomes(transactional=False).failed(queue, TOO_LARGE)
    assert outcome is not None
    assert outcome.next is Next.REFUSE
    assert "it can't be split" in str(outcome.error)


def test_the_last_answer_of_those_in_flight_brings_the_first_error() -> None:
    outcomes, queue = ProduceOutcomes(transactional=False), sent(1, 1, 1, in_flight=3)
    assert outcomes.failed(queue, RETRIED) is None
    assert outcomes.failed(queue, UNORDERED) is None
    outcome = outcomes.failed(queue, UNORDERED)
    assert outcome is not None
    assert (outcome.next, outcome.error) == (Next.RETRY, RETRIED)


def test_failures_are_counted_up_to_the_next_acknowledgement() -> None:
    outcomes, queue = ProduceOutcomes(transactional=False), sent(1, 1)
    outcomes.failed(queue, RETRIED)
    assert queue.failures == 1
    queue.take()
    outcomes.acknowledged(queue, 0)
    assert queue.failures == 0


@pytest.mark.parametrize(
    ("written", "acknowledged", "expected"),
    [
        ([], [], Next.RETRY),
        ([Written(0, 1, 70)], [(1, 70)], Next.RETRY),
        ([Written(0, 1, 70), Written(1, 2, 71)], [(1, 70), (2, 71)], Next.SEND),
        ([Written(0, 9, 70), Written(1, 2, 79)], [], Next.RETRY),
        ([Written(1, 2, 71)], [], Next.RETRY),
    ],
)
def test_what_the_log_has_is_acknowledged_in_order_and_the_rest_sent_again(
    written: list[Written], acknowledged: list[tuple[int, int]], expected: Next
) -> None:
    outcomes, queue = ProduceOutcomes(transactional=True), sent(1, 2, in_flight=2)
    assert outcomes.failed(queue, LOST) is None
    outcome = outcomes.failed(queue, LOST)
    assert outcome is not None
    assert (outcome.next, queue.phase) == (Next.CHECK_LOG, QueuePhase.CHECKING_LOG)
    assert not outcomes.is_settled
    found = [(len(pending.batch.offsets), offset) for pending, offset in outcomes.found(queue, written)]
    assert found == acknowledged
    assert outcomes.recover(queue, outcome.error).next is expected
    assert outcomes.is_settled == (expected is Next.SEND)
    assert queue.next_offset == (acknowledged[-1][1] + acknowledged[-1][0] if acknowledged else 0)


def test_the_end_of_a_transaction_is_waited_for_or_loses_what_was_written_in_it() -> None:
    for error, within, outside in (
        (COMPLETING, Next.RETRY_SOON, Next.RETRY),
        (ENDED, Next.GIVE_UP, Next.REFUSE),
    ):
        for transactional, expected in ((True, within), (False, outside)):
            outcome = ProduceOutcomes(transactional=transactional).failed(sent(1), error)
            assert outcome is not None
            assert outcome.next is expected


def test_a_transaction_with_something_in_doubt_is_lost_when_a_batch_is_refused() -> None:
    outcomes, queue = ProduceOutcomes(transactional=True), sent(1, 1, in_flight=2)
    outcomes.failed(queue, LOST)
    outcomes.failed(queue, LOST)
    assert outcomes.recover(queue, REFUSED).next is Next.GIVE_UP
