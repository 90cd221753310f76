"""Carries out what `partition_states` asks for."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sparkmirror.copy import partition_events as events
from sparkmirror.copy.buffer import Buffer
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Do, Instruction, Start
from sparkmirror.copy.partition_lookups import PartitionLookups
from sparkmirror.copy.partition_steps import PartitionSteps
from sparkmirror.copy.preserve.gap_filling import GapFilling
from sparkmirror.copy.resume.attempt_writes import AttemptRecorder
from sparkmirror.copy.source_listener import SourceListener
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.copy.write_strategy import Delivery, PlainWrites, WriteStrategy
from sparkmirror.domain.ids import TopicPartition


class Strategies(NamedTuple):
    """Makes the write strategies of a task's partitions, one for each start."""

    delivery: Delivery
    attempts: AttemptRecorder
    gaps: GapFilling
    state: StateWriter

    def of(self, copy: PartitionCopy, start: Start) -> WriteStrategy:
        if start.claimed is not None:
            return self.gaps.writes(copy, start)
        if start.attempt is not None:
            return self.attempts.writes(copy, start)
        if copy.continues:
            return copy.writes
        return PlainWrites(copy.plan.source, copy.plan.target, self.delivery, self.state.note_sync)


class Instructions:
    """Carries out the instructions of partitions. On the loop's thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        steps: PartitionSteps,
        buffer: Buffer,
        lookups: PartitionLookups,
        source: SourceListener,
        strategies: Strategies,
    ) -> None:
        self._loop = loop
        self._steps = steps
        self._buffer = buffer
        self._lookups = lookups
        self._reader = source.reader
        self._fetching = source.fetching
        self._strategies = strategies
        self._timers: dict[TopicPartition, asyncio.TimerHandle] = {}
        self._actions = self._action_of()

    def _action_of(self) -> Mapping[Do, Callable[[PartitionCopy], None]]:
        lookups, fetching = self._lookups, self._fetching
        return {
            Do.READ_POSITION: lambda copy: lookups.read_position(copy.plan.source),
            Do.FETCH_NEXT: fetching.fetch_next_soon,
            Do.FETCH_WHEN_FREE: fetching.fetch_next_when_free,
            Do.PAUSE_FETCH: lambda copy: self._reader.pause(copy.plan.source),
            Do.AWAIT_DRAINED: self._steps.report_if_drained,
            Do.DISCARD: self._discard,
            Do.FREE_BUFFER: self._free_buffer,
            Do.DISTRUST: PartitionCopy.distrust,
            Do.FORGET_POSITION: PartitionCopy.forget_position,
            Do.CANCEL_RESOLVE: lambda copy: lookups.cancel_resolve(copy.plan.source),
            Do.CANCEL_LOOK_UP: lambda copy: lookups.cancel_look_up(copy.plan.source),
            Do.CANCEL_TIMER: lambda copy: self._timers.pop(copy.plan.source).cancel(),
        }

    def carry_out(self, copy: PartitionCopy, instruction: Instruction) -> None:
        source = copy.plan.source
        match instruction:
            case Do():
                self._actions[instruction](copy)
            case events.SetTimer(deadline):
                self._timers[source] = self._loop.call_at(deadline, self._expire, copy)
            case events.LookUp(producer_ids):
                self._lookups.look_up(source, producer_ids)
            case events.Note(incident, repeats):
                copy.note(incident, repeats=repeats)
            case events.Resolve(reason):
                self._lookups.resolve(source, copy.resume_reason(reason))
            case events.StartFrom(start):
                self._start(copy, start)

    def _start(self, copy: PartitionCopy, start: Start) -> None:
        plan, logs, strategies = copy.plan, start.logs, self._strategies
        if copy.preserves_offsets and start.claimed is None:
            strategies.state.end_same_offsets(copy)
        copy.begin(start, strategies.of(copy, start))
        strategies.state.resume_after(plan.source, start.run)
        strategies.delivery.writer.begin(plan.target, start.producer, logs.target_id)
        copy.writes.started()
        self._reader.begin(plan.source, start.position, logs.source_id, logs.source_epoch)
        self._fetching.fetch_soon()

    def _expire(self, copy: PartitionCopy) -> None:
        del self._timers[copy.plan.source]
        self._steps.take(copy, events.TimerExpired())

    def _discard(self, copy: PartitionCopy) -> None:
        self._buffer.free(copy.outstanding_bytes)
        copy.discard()

    def _free_buffer(self, copy: PartitionCopy) -> None:
        self._buffer.free(copy.drop_unsent(self._strategies.delivery.writer.drop_unsent))
