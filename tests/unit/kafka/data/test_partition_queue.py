"""The partition queue: sequences of batches, also after a new transaction, and discarded batches."""

import pytest

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import (
    SEQUENCE_MODULUS,
    TRANSACTIONAL,
    OutgoingBatch,
    has_valid_crc,
    iterate_batches,
)
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_queue import PHASES, PartitionQueue, QueueEvent, QueuePhase, step_queue
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID
from tests.support.batches import Rec, encode

FIRST = ProducerId(7, 0)
LOST = RetriableError("connection lost")


def queue_with(*counts: int, first: int = 0) -> PartitionQueue:
    queue = PartitionQueue(TopicPartition("orders", 0))
    queue.number(ProducerState(FIRST, first, 0), NO_TOPIC_ID, now=0.0)
    for count in counts:
        data = memoryview(bytearray(encode([Rec(at, 1000) for at in range(count)])))
        queue.append(OutgoingBatch(data, range(count), 0))
    return queue


def stamped(queue: PartitionQueue, *, transactional: bool) -> list[tuple[int, int, bool]]:
    """Epoch, sequence and transactional bit of what waits."""
    found = []
    for pending in queue.ready:
        assert queue.producer is not None
        (batch,) = iterate_batches(pending.stamped_by(queue.producer, transactional=transactional))
        assert has_valid_crc(batch)
        header = batch.header
        found.append((header.producer_epoch, header.base_sequence, bool(header.attributes & TRANSACTIONAL)))
    return found


def test_what_waits_is_numbered_again_even_if_it_was_sent_and_refused_before() -> None:
    queue = queue_with(3, 1, 2)
    assert stamped(queue, transactional=True) == [(0, 0, True), (0, 3, True), (0, 4, True)]
    queue.ready.popleft()
    queue.proven = True
    queue.renumber(FIRST.next_epoch())
    assert stamped(queue, transactional=True) == [(1, 0, True), (1, 1, True)]
    assert (queue.next_sequence, queue.proven, queue.in_flight_max) == (3, False, 1)


def test_without_transactions_no_batch_has_their_bit() -> None:
    assert stamped(queue_with(2, 2), transactional=False) == [(0, 0, False), (0, 2, False)]


def test_sequences_continue_at_0_after_the_largest() -> None:
    queue = queue_with(4, 1, first=SEQUENCE_MODULUS - 2)
    assert stamped(queue, transactional=False) == [(0, SEQUENCE_MODULUS - 2, False), (0, 2, False)]
    assert queue.split_first()
    assert [pending.sequence for pending in queue.ready] == [SEQUENCE_MODULUS - 2, 0, 2]
    assert queue.next_sequence == 3


def test_a_half_is_as_doubtful_as_the_whole() -> None:
    queue = queue_with(2)
    assert not queue.is_doubtful
    queue.ready[0].is_doubtful = True
    assert queue.split_first()
    assert [pending.is_doubtful for pending in queue.ready] == [True, True]


def test_a_pair_that_is_not_in_the_table_raises() -> None:
    for phase, row in PHASES.items():
        for event in set(QueueEvent) - set(row):
            with pytest.raises(RuntimeError, match=f"{event.value} while {phase.value}"):
                step_queue(phase, event)


def test_what_was_never_sent_is_dropped_and_numbered_again() -> None:
    queue = queue_with(3, 1, 2)
    queue.take()
    assert queue.drop_unsent() == 2
    assert (queue.next_sequence, len(queue.in_flight), queue.has_unsent) == (3, 1, False)
    queue.append(OutgoingBatch(memoryview(bytearray(encode([Rec(0, 1000)]))), range(1), 0))
    assert queue.ready[0].sequence == 3


def test_what_may_be_in_the_log_is_never_dropped() -> None:
    queue = queue_with(3, 1, 2)
    queue.take()
    assert queue.fail_first(LOST, is_unclear=True) is LOST
    assert queue.needs_check()
    assert not queue.needs_check()
    assert queue.drop_unsent() == 2
    assert [(pending.sequence, pending.is_doubtful) for pending in queue.ready] == [(0, True)]
    assert queue.next_sequence == 3


def test_a_refused_batch_is_dropped_as_it_is_in_no_log() -> None:
    queue = queue_with(3, 1)
    queue.take()
    queue.fail_first(LOST, is_unclear=False)
    assert (queue.drop_unsent(), queue.next_sequence) == (2, 0)


def test_half_of_a_batch_is_not_dropped() -> None:
    """The other half may be in flight: the whole would be fetched again."""
    queue = queue_with(2, 1)
    assert queue.split_first()
    assert queue.drop_unsent() == 1
    assert [pending.sequence for pending in queue.ready] == [0, 1]


def test_the_first_failure_counts_when_all_in_flight_are_settled() -> None:
    queue = queue_with(1, 1, 1)
    queue.proven = True
    for _ in range(3):
        queue.take()
    assert queue.fail_first(LOST, is_unclear=False) is None
    assert queue.phase is QueuePhase.DRAINING
    assert queue.fail_first(RetriableError("out of order"), is_unclear=False) is None
    assert queue.fail_first(RetriableError("out of order"), is_unclear=False) is LOST
    assert [pending.sequence for pending in queue.ready] == [0, 1, 2]


def test_a_slow_partition_is_quick_after_three_quick_responses_with_nothing_in_flight() -> None:
    queue = queue_with(1)
    queue.timed_out()
    assert [queue.responded(took_s) for took_s in (0.1, 0.1, 2.0, 0.1, 0.1)] == [False] * 5
    queue.take()
    assert not queue.responded(0.1)
    queue.in_flight.clear()
    assert queue.responded(0.1)
    assert not queue.is_slow
