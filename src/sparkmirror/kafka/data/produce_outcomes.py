"""Decides what responses to Produce mean for a queue: acknowledged, to be sent again, refused or given up.

Pure.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, SparkmirrorError
from sparkmirror.kafka.data.partition_queue import PartitionQueue, PendingBatch, QueueEvent
from sparkmirror.kafka.data.written_batches import Written
from sparkmirror.kafka.wire import error_codes


class Next(Enum):
    """The writer's next step for a queue after a failure, when nothing of it is in flight any more."""

    SEND = "send"
    """Send what is ready at once."""
    CHECK_LOG = "check log"
    """Some of it may have been written: read the log first."""
    RETRY = "retry"
    """Send again after a back-off."""
    RETRY_SOON = "retry soon"
    """The end of the transaction before is still being written on the partition."""
    GIVE_UP = "give up"
    """The sequence is lost, or the transaction: everything was dropped."""
    REFUSE = "refuse"
    """The target will never take the first batch: it was dropped with all behind it."""


class Outcome(NamedTuple):
    next: Next
    error: SparkmirrorError
    refused: OutgoingBatch | None = None


class ProduceOutcomes:
    """Changes queues by the outcomes of their requests. In transactions it remembers which are in doubt."""

    def __init__(self, *, transactional: bool) -> None:
        self._transactional = transactional
        self._doubtful: set[PartitionQueue] = set()
        """Queues with something that may be in the log and is not acknowledged; in transactions only."""

    @property
    def is_settled(self) -> bool:
        """Whether everything that may be in a log is acknowledged."""
        return not self._doubtful

    def acknowledged(self, queue: PartitionQueue, base_offset: int) -> PendingBatch:
        """The first batch in flight was written. Returns it."""
        pending = queue.acknowledge_first(base_offset)
        if self._doubtful:
            self._settle(queue)
        return pending

    def found(self, queue: PartitionQueue, written: Sequence[Written]) -> Iterator[tuple[PendingBatch, int]]:
        """Take the first batches that turned out to be in the log, each with its base offset there."""
        arrived = {batch.sequence: batch for batch in written}
        while queue.ready and (batch := arrived.get(queue.ready[0].sequence)):
            if batch.record_count != len(queue.ready[0].batch.offsets):
                return
            pending = queue.acknowledge_found(batch.base_offset)
            self._settle(queue)
            yield pending, batch.base_offset

    def failed(self, queue: PartitionQueue, error: SparkmirrorError) -> Outcome | None:
        """The first batch in flight failed. None while more of the queue is in flight."""
        is_unclear = error.code in error_codes.UNCLEAR
        failure = queue.fail_first(error, is_unclear=is_unclear)
        if is_unclear and self._transactional:
            self._doubtful.add(queue)
        if failure is None:
            return None
        if queue.needs_check():
            queue.happened(QueueEvent.UNCLEAR)
            return Outcome(Next.CHECK_LOG, failure)
        return self.recover(queue, failure)

    def recover(self, queue: PartitionQueue, error: SparkmirrorError) -> Outcome:
        """Decide how the queue continues. What is ready is not in the log, as far as can be known."""
        code = error.code
        if not queue.ready:
            queue.happened(QueueEvent.RETRY)
            return Outcome(Next.SEND, error)
        if code in error_codes.WORTH_HALVING:
            try:
                if queue.split_first():
                    queue.happened(QueueEvent.RETRY)
                    return Outcome(Next.SEND, error)
            except CorruptBatchError as reason:
                error = KafkaError(f"{error}; it can't be split: {reason}", code)
        if code == error_codes.CONCURRENT_TRANSACTIONS and self._transactional:
            queue.happened(QueueEvent.BACK_OFF)
            return Outcome(Next.RETRY_SOON, error)
        if code in error_codes.SEQUENCE_UNKNOWN or self._is_lost(queue, error):
            queue.give_up()
            return Outcome(Next.GIVE_UP, error)
        if error.retriable:
            queue.back_off()
            return Outcome(Next.RETRY, error)
        return Outcome(Next.REFUSE, error, queue.refuse_first())

    def _is_lost(self, queue: PartitionQueue, error: SparkmirrorError) -> bool:
        """Whether the transaction can't be committed any more: it is over, or its contents are in doubt."""
        if not self._transactional:
            return False
        return error.code in error_codes.TRANSACTION_LOST or (not error.retriable and queue in self._doubtful)

    def _settle(self, queue: PartitionQueue) -> None:
        if queue in self._doubtful and not queue.is_doubtful:
            self._doubtful.discard(queue)
