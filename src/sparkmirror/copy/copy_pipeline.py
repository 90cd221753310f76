"""Connects a task's reader and writer: batches go from one to the other, events to `partition_states`.

The hot path (`fetched`, `acknowledged`) touches no state as long as nothing changes.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.cycles import CycleError, UnknownWriterError
from sparkmirror.batches.record_batch import OutgoingBatch, writers
from sparkmirror.copy import partition_events as events
from sparkmirror.copy.bad_batches import BadBatches
from sparkmirror.copy.buffer import Buffer
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.copy_rules import copy_rules
from sparkmirror.copy.copy_state import Phase, is_undisturbed
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Do, Event, Instruction
from sparkmirror.copy.partition_lookups import PartitionLookups
from sparkmirror.copy.partition_states import step
from sparkmirror.copy.preserve.gap_filling import GapFilling
from sparkmirror.copy.resume.attempt_writes import AttemptWrites
from sparkmirror.copy.resume.claims import Claims
from sparkmirror.copy.resume.leader_change_check import LeaderChangeCheck, Missing
from sparkmirror.copy.resume.resumption import Resumption
from sparkmirror.copy.task_state import TaskState
from sparkmirror.copy.throttle import Throttle
from sparkmirror.domain.errors import CorruptBatchError, FencedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import (
    Incident,
    IncidentKind,
    cycle_found,
    offset_mismatch,
    target_overwritten,
)
from sparkmirror.kafka.data.batch_reader import BatchReader
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH, name_of
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.storage.progress import TaskLoad

_BUFFER_FULL, _BUFFER_FREE = events.BufferFull(), events.BufferFree()


def _copies(
    plan: TaskPlan, rules: Mapping[TopicPartition, CopyRules], cycles: CycleDetection
) -> Mapping[TopicPartition, PartitionCopy]:
    """By source partition."""
    read_committed = plan.consumer.read_committed
    return {
        partition.source: PartitionCopy(
            partition, rules[partition.source], read_committed=read_committed, cycles=cycles.filter()
        )
        for partition in plan.partitions
    }


class CopyPipeline:
    """The listener of the reader and, except in transactions, of the writer. On the loop's thread only."""

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        state: TaskState,
        cycles: CycleDetection,
        fenced_pause_s: float,
    ) -> None:
        rules = copy_rules(plan)
        self._plan = plan
        self._loop = loop
        self._state = state
        self._cycles = cycles
        self._fenced_pause_s = fenced_pause_s
        self.reader = BatchReader(plan.consumer, loop, self)
        self.writer = BatchWriter(plan.writer_settings, loop, self)
        """In transactions each initialisation has another."""
        claims = Claims.of(plan, cycles)
        resumption = Resumption.of(plan, cycles, state.store, claims)
        self.lookups = PartitionLookups(loop, state, resumption, cycles, self.report)
        self.writes = AttemptWrites(
            claims,
            loop,
            lambda: self.writer,
            self.lookups.run,
            lambda source, error: self.report(source, events.WriteFailed(error)),
        )
        self.gaps = GapFilling(plan, loop, lambda: self.writer, self.lookups.run, self.report, fenced_pause_s)
        self._throttle = Throttle(plan.rate_limits, plan.rate_shares, loop, self.reader.fetch_more)
        self._copies = _copies(plan, rules, cycles)
        self._by_target = {copy.plan.target: copy for copy in self._copies.values()}
        self._actions = self._action_of()
        self._events: deque[tuple[PartitionCopy, Event]] = deque()
        self._timers: dict[TopicPartition, asyncio.TimerHandle] = {}
        self._transaction_error: SparkmirrorError | None = None
        self._buffer = Buffer(plan)
        self._bad_batches = BadBatches(plan)
        self._leader_changes = LeaderChangeCheck(plan.producer.connection, self._last_entry_missing)
        self._will_fetch = False

    def _action_of(self) -> Mapping[Do, Callable[[PartitionCopy], None]]:
        return {
            Do.READ_POSITION: lambda copy: self.lookups.read_position(copy.plan.source),
            Do.FETCH_NEXT: self._fetch_next_soon,
            Do.FETCH_WHEN_FREE: self._fetch_next_when_free,
            Do.PAUSE_FETCH: lambda copy: self.reader.pause(copy.plan.source),
            Do.AWAIT_DRAINED: self._check_drained,
            Do.DISCARD: self._discard,
            Do.FREE_BUFFER: self._free_buffer,
            Do.FORGET_POSITION: PartitionCopy.forget_position,
            Do.CANCEL_RESOLVE: lambda copy: self.lookups.cancel_resolve(copy.plan.source),
            Do.CANCEL_LOOK_UP: lambda copy: self.lookups.cancel_look_up(copy.plan.source),
            Do.CANCEL_TIMER: lambda copy: self._timers.pop(copy.plan.source).cancel(),
        }

    @property
    def copies(self) -> Collection[PartitionCopy]:
        return self._copies.values()

    @property
    def targets(self) -> Collection[TopicPartition]:
        return self._by_target.keys()

    @property
    def has_outstanding(self) -> bool:
        return self._buffer.outstanding_bytes > 0

    def start(self) -> None:
        self.reader.start(self._copies.keys(), {})

    def stop(self) -> None:
        """Fetch nothing more. What is in flight may still be acknowledged."""
        self.report_all(events.Stop())
        self.lookups.stop()
        self._throttle.stop()
        self.reader.stop()

    def change_limits(self, limits: RateLimits) -> None:
        self._throttle.change(limits)
        self.report_all(events.LimitsChanged())

    def renew(self) -> None:
        """Let attempts be followed by new ones before a coordinator forgets their transactional ids."""
        for copy in self.writes.old():
            self._report(copy, events.RenewalDue())

    def _writes(self, copy: PartitionCopy) -> AttemptWrites | GapFilling:
        return self.gaps if copy.preserves_offsets else self.writes

    # events in, instructions out

    def report_all(self, event: Event) -> None:
        for partition in self._copies:
            self.report(partition, event)

    def report(self, partition: TopicPartition, event: Event) -> None:
        """Carry out what follows from it for a source partition."""
        self._report(self._copies[partition], event)

    def _report(self, copy: PartitionCopy, event: Event) -> None:
        self._events.append((copy, event))
        if len(self._events) > 1:
            return  # an instruction of the event before brought it, and comes first
        try:
            while self._events:
                copy, event = self._events[0]
                copy.state, instructions = step(copy.state, event, self._loop.time())
                for instruction in instructions:
                    self._carry_out(copy, instruction)
                self._events.popleft()
        finally:
            self._events.clear()

    def _carry_out(self, copy: PartitionCopy, instruction: Instruction) -> None:
        source = copy.plan.source
        match instruction:
            case Do():
                self._actions[instruction](copy)
            case events.SetTimer(deadline):
                self._timers[source] = self._loop.call_at(deadline, self._expire, copy)
            case events.LookUp(producer_ids):
                self.lookups.look_up(source, producer_ids)
            case events.Note(incident):
                self._note_once(copy, incident)
            case events.Resolve(reason):
                self.lookups.resolve(source, copy.resume_reason(reason))
            case events.StartFrom(start):
                self._start(copy, start)

    def _start(self, copy: PartitionCopy, start: events.Start) -> None:
        logs = start.logs
        if copy.preserves_offsets and start.claimed is None:
            self._translate_from_now_on(copy)
        copy.preserves_offsets = start.claimed is not None
        copy.start(start.position, start.producer, logs)
        if start.keeps_all:
            copy.cycles = None
        copy.log_start, copy.same_end = start.log_start, start.producer.next_offset
        if start.incident is not None:
            copy.note(start.incident)
        self._state.resume_after(copy.plan.source, start.run)
        self.writer.begin(copy.plan.target, start.producer, logs.target_id)
        self._writes(copy).begin(copy, start)
        self.reader.begin(copy.plan.source, start.position, logs.source_id, logs.source_epoch)
        self._fetch_soon()

    def _translate_from_now_on(self, copy: PartitionCopy) -> None:
        self._state.end_same_offsets(copy)
        self.gaps.end(copy)

    def _expire(self, copy: PartitionCopy) -> None:
        del self._timers[copy.plan.source]
        self._report(copy, events.TimerExpired())

    def _check_drained(self, copy: PartitionCopy) -> None:
        if not copy.outstanding_bytes:
            self._report(copy, events.Drained())

    def _fetch_next(self, copy: PartitionCopy) -> None:
        """Fetch what follows, unless the partition is too far ahead of its acknowledgements, or too fast."""
        if self._buffer.is_full_for(copy):
            self._report(copy, _BUFFER_FULL)
        elif (throttle_s := self._throttle.throttle_s(copy.plan.source)) > 0:
            self._report(copy, events.LimitReached(throttle_s))
        else:
            self.reader.advance(copy.plan.source, copy.fetch_position)

    def _fetch_next_soon(self, copy: PartitionCopy) -> None:
        self._fetch_next(copy)
        self._fetch_soon()

    def _fetch_next_when_free(self, copy: PartitionCopy) -> None:
        self._fetch_next(copy)
        self._buffer.await_half()

    def _fetch_soon(self) -> None:
        if not self._will_fetch:
            self._will_fetch = True
            self._loop.call_soon(self._fetch_now)

    def _fetch_now(self) -> None:
        self._will_fetch = False
        self.reader.fetch_more()

    # the buffer

    def _discard(self, copy: PartitionCopy) -> None:
        self._buffer.outstanding_bytes -= copy.outstanding_bytes
        copy.discard()
        copy.is_settled = False
        self._writes(copy).dropped(copy)

    def _free_buffer(self, copy: PartitionCopy) -> None:
        dropped = copy.held.drop() + self.writer.drop_unsent(copy.plan.target)
        self._buffer.outstanding_bytes -= copy.drop_last(dropped)
        self._writes(copy).dropped(copy)

    def budget_bytes(self) -> int:
        return self._throttle.allowed(self._buffer.free_bytes)

    def load(self) -> TaskLoad:
        """What the task measures of itself; how long positions take to write is not known here."""
        reader = self.reader
        return TaskLoad(
            sum(copy.fetch_position - copy.position for copy in self._copies.values()),
            None,
            reader.fetches,
            reader.fetch_s * 1000,
            *reader.traffic,
            *self.writer.traffic,
            self._buffer.bytes_max,
            self._buffer.outstanding_bytes,
        )

    def check_buffer(self) -> None:
        """Take the buffer from partitions that can't be written, when others need it. Once a second."""
        if self._buffer.is_half_free:
            self._buffer.forget_silent()
            return
        stuck = set(self._buffer.stuck(self._copies.values(), self._loop.time()))
        if any(copy.state.phase is Phase.COPYING for copy in self._copies.values() if copy not in stuck):
            for copy in stuck:
                if copy.held or self.writer.has_unsent(copy.plan.target):
                    self._report(copy, events.BufferNeeded(random.random()))
        self._fetch_soon()

    # the reader's listener

    def fetched(self, fetched: FetchedPartition) -> None:
        copy = self._copies[fetched.partition]
        if copy.state.fetch_error is not None:
            self._report(copy, events.FetchWorks())
        read_committed = self._plan.consumer.read_committed
        copy.end_offset = fetched.last_stable_offset if read_committed else fetched.high_watermark
        epoch = self.reader.read_epoch(fetched.partition)
        if epoch != copy.logs.source_epoch:
            copy.logs = copy.logs._replace(source_epoch=epoch)
        before, writes = copy.outstanding_bytes, self._writes(copy)
        obstacle: Event | None = None
        try:
            for batch in copy.take(fetched, self._buffer.takeable_bytes):
                writes.append(copy, batch)
        except CorruptBatchError as error:
            obstacle = self._bad_batches.unreadable(copy, fetched, error)
        except UnknownWriterError:
            obstacle = events.WritersUnknown(writers(fetched.records))
        except CycleError as error:
            refusal = self._cycles.refusal(copy.plan, error)
            obstacle = events.SourceBatchFailed(refusal, random.random())
        taken = copy.outstanding_bytes - before
        self._buffer.outstanding_bytes += taken
        self._throttle.taken(fetched.partition, taken)
        if copy.preserves_offsets:
            obstacle = self.gaps.mismatch(copy) or obstacle
            self.gaps.moved(copy)
        if obstacle is None:
            self._fetch_next(copy)
        else:
            self._report(copy, obstacle)
        if copy.looped and not copy.incidents[IncidentKind.LOOP]:
            self._note_cycle(copy)

    def response_taken(self) -> None:
        self.writer.flush()

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self.report(partition, events.FetchFailed(error))

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        self.report(partition, events.OutOfRange())

    def source_diverged(self, partition: TopicPartition, at: int, epoch: int) -> None:
        self.report(partition, events.Diverged(at, epoch))

    def source_recreated(self, partition: TopicPartition) -> None:
        self.report(partition, events.SourceRecreated())

    def _note_cycle(self, copy: PartitionCopy) -> None:
        """That two clusters mirror each other is no error."""
        assert copy.cycles is not None
        assert copy.cycles.first is not None
        copy.note(cycle_found(*copy.cycles.first, *self._plan.flow))

    def _note_once(self, copy: PartitionCopy, incident: Incident) -> None:
        if not copy.incidents[incident.kind]:
            copy.note(incident)

    # the writer's listener

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        copy = self._by_target[partition]
        before = copy.outstanding_bytes
        copy.acknowledged(batch, base_offset, time.time() * 1000, completes=completes)
        self._buffer.outstanding_bytes += copy.outstanding_bytes - before
        if copy.preserves_offsets:
            self._check_offset(copy, batch, base_offset)
        else:
            self._state.note_sync(copy.plan.source, batch, base_offset)
        if copy.state is not copy.undisturbed:
            self._report_acknowledgement(copy)
        if self._buffer.is_awaited_and_free():
            self._fetch_soon()

    def _check_offset(self, copy: PartitionCopy, batch: OutgoingBatch, base_offset: int) -> None:
        if base_offset == batch.offsets[0]:
            copy.same_end = base_offset + len(batch.offsets)
            self.gaps.moved(copy)
        else:
            incident = offset_mismatch(copy.plan.target, base_offset, batch.offsets[0])
            self._report(copy, events.OffsetMismatch(incident))

    def _report_acknowledgement(self, copy: PartitionCopy) -> None:
        state = copy.state
        if state.failures or state.write_error is not None:
            self._report(copy, events.WriteWorks())
        if state.phase is Phase.BACKPRESSURED and self._buffer.is_free_for(copy):
            self._report(copy, _BUFFER_FREE)
        elif state.phase is Phase.DRAINING:
            self._check_drained(copy)
        elif is_undisturbed(copy.state):
            copy.undisturbed = copy.state

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._report(self._by_target[partition], events.WriteFailed(error))

    def write_possible(self, partition: TopicPartition) -> None:
        self._report(self._by_target[partition], events.WritePossible())

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        copy = self._by_target[partition]
        self._report(copy, self._bad_batches.refused(copy, batch, error))

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        event: Event = events.SequenceLost(error)
        if error.code == INVALID_PRODUCER_EPOCH:
            text = f"produce to {partition}: another task or command has claimed it ({name_of(error.code)})"
            event = events.Fenced(FencedError(text, error.code), self._fenced_pause_s)
        self._report(self._by_target[partition], event)

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None:
        self.lookups.run(self._leader_changes.check({at: self._by_target[at] for at in partitions}))

    def _last_entry_missing(self, copy: PartitionCopy, missing: Missing) -> None:
        """Another attempt begins, which fences anew and looks up what there is."""
        if missing.is_replaced:
            copy.note(target_overwritten(copy.plan.target, missing.entry.offset))
        self.writes.distrust(copy)

    def target_recreated(self, partition: TopicPartition) -> None:
        self._report(self._by_target[partition], events.TargetRecreated())

    # transactions

    def transaction_failed(self, error: SparkmirrorError | None) -> None:
        if error is None:
            self.report_all(events.TransactionRecovered(self._transaction_error))
        else:
            self.report_all(events.TransactionFailed(error))
        self._transaction_error = error
