"""Takes what the writer reports of target partitions: acknowledgements count, everything else is an event."""

import asyncio
import time
from collections.abc import Collection

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy import partition_events as events
from sparkmirror.copy.bad_batches import BadBatches
from sparkmirror.copy.buffer import Buffer
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Event
from sparkmirror.copy.partition_lookups import PartitionLookups
from sparkmirror.copy.partition_steps import PartitionSteps
from sparkmirror.copy.resume.leader_change_check import LeaderChangeCheck
from sparkmirror.domain.errors import FencedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH, name_of

_BUFFER_FREE = events.BufferFree()


class TargetListener:
    """The listener of `writer`. In transactions `TransactionCycle` owns the writers and passes on calls.

    `acknowledged` asks no state unless something changes. On the loop's thread.
    """

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        steps: PartitionSteps,
        buffer: Buffer,
        lookups: PartitionLookups,
        fenced_pause_s: float,
    ) -> None:
        self._steps = steps
        self._buffer = buffer
        self._lookups = lookups
        self._fenced_pause_s = fenced_pause_s
        self._by_target = {copy.plan.target: copy for copy in steps.copies}
        self._bad_batches = BadBatches(plan)
        self._leader_changes = LeaderChangeCheck(plan.producer.connection, self._take)
        self._transaction_error: SparkmirrorError | None = None
        self.writer = BatchWriter(plan.writer_settings, loop, self)

    @property
    def targets(self) -> Collection[TopicPartition]:
        return self._by_target.keys()

    @property
    def copies(self) -> Collection[PartitionCopy]:
        return self._steps.copies

    @property
    def has_outstanding(self) -> bool:
        return self._buffer.outstanding_bytes > 0

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        copy = self._by_target[partition]
        before = copy.outstanding_bytes
        copy.acknowledged(batch, base_offset, time.time() * 1000, completes=completes)
        self._buffer.free(before - copy.outstanding_bytes)
        mismatch = copy.writes.acknowledged(batch, base_offset)
        if mismatch is not None:
            self._steps.take(copy, mismatch)
        if not copy.is_undisturbed:
            self._report_acknowledgement(copy)

    def _report_acknowledgement(self, copy: PartitionCopy) -> None:
        state = copy.state
        if state.failures or state.write_error is not None:
            self._steps.take(copy, events.WriteWorks())
        if state.phase is Phase.BACKPRESSURED and self._buffer.is_free_for(copy):
            self._steps.take(copy, _BUFFER_FREE)
        elif state.phase is Phase.DRAINING:
            self._steps.report_if_drained(copy)

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._take(partition, events.WriteFailed(error))

    def write_possible(self, partition: TopicPartition) -> None:
        self._take(partition, events.WritePossible())

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        copy = self._by_target[partition]
        self._steps.take(copy, self._bad_batches.refused(copy, batch, error))

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        event: Event = events.SequenceLost(error)
        if error.code == INVALID_PRODUCER_EPOCH:
            text = f"produce to {partition}: another task or command has claimed it ({name_of(error.code)})"
            event = events.Fenced(FencedError(text, error.code), self._fenced_pause_s)
        self._take(partition, event)

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None:
        self._lookups.run(self._leader_changes.check({at: self._by_target[at] for at in partitions}))

    def target_recreated(self, partition: TopicPartition) -> None:
        self._take(partition, events.TargetRecreated())

    def transaction_failed(self, error: SparkmirrorError | None) -> None:
        """The error that keeps all partitions waiting; None when it is over."""
        if error is None:
            self._steps.report_all(events.TransactionRecovered(self._transaction_error))
        else:
            self._steps.report_all(events.TransactionFailed(error))
        self._transaction_error = error

    def _take(self, target: TopicPartition, event: Event) -> None:
        self._steps.take(self._by_target[target], event)
