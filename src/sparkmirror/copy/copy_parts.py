"""Wires the parts that copy a task's partitions: listeners, strategies, and what carries out instructions."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor

from sparkmirror.copy import partition_events as events
from sparkmirror.copy.buffer import Buffer
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.instructions import Instructions, Strategies
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Instruction
from sparkmirror.copy.partition_lookups import PartitionLookups
from sparkmirror.copy.partition_steps import PartitionSteps
from sparkmirror.copy.preserve.gap_filling import GapFilling
from sparkmirror.copy.resume.attempt_writes import AttemptRecorder
from sparkmirror.copy.resume.claims import Claims
from sparkmirror.copy.resumption import Resumption
from sparkmirror.copy.source_listener import SourceListener
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.copy.target_listener import TargetListener
from sparkmirror.copy.transactions.transaction_cycle import TransactionCycle
from sparkmirror.copy.write_strategy import Delivery
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.storage.progress import TaskLoad


def _copies(plan: TaskPlan, cycles: CycleDetection) -> Mapping[TopicPartition, PartitionCopy]:
    """Make the partitions' copies, by source partition."""
    read_committed = plan.consumer.read_committed
    return {
        partition.source: PartitionCopy(
            partition,
            plan.rules_of(partition),
            read_committed=read_committed,
            cycles=cycles.filter(),
            change=partition.change,
        )
        for partition in plan.partitions
    }


class _LastMinute:
    """Tells which share of the last minute a growing number of seconds makes."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._noted = deque([(time(), 0.0)])

    def noted(self, seconds: float) -> float:
        """Take the seconds of now; return the share. A task that has just begun counts as 10 s old."""
        now = self._time()
        self._noted.append((now, seconds))
        while len(self._noted) > 2 and self._noted[1][0] <= now - 60.0:
            self._noted.popleft()
        since, before = self._noted[0]
        return min(1.0, (seconds - before) / max(now - since, 10.0))


class CopyParts:
    """Holds the parts of a copy loop, for its thread only. `transactions` is None where they are not used."""

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        state: StateWriter,
        cycles: CycleDetection,
        fenced_pause_s: float,
        coordinator: Executor | None = None,
    ) -> None:
        """`coordinator` is that of `TransactionCycle`."""
        self._buffer = buffer = Buffer(plan, self._fetch_soon)
        self.steps = steps = PartitionSteps(_copies(plan, cycles), loop.time, self._carry_out)
        claims = Claims.of(plan, cycles)
        resumption = Resumption.of(plan, cycles, state.store, claims)
        self.lookups = PartitionLookups(loop, state, resumption, cycles, steps.report)
        self.target = TargetListener(plan, loop, steps, buffer, self.lookups, fenced_pause_s)
        self.transactions = (
            None
            if plan.transaction is None
            else TransactionCycle(plan, loop, self.target, state, cycles, coordinator)
        )
        self._delivery: Delivery = self.transactions or self.target
        self.source = SourceListener(plan, loop, steps, buffer, cycles, self._delivery)
        run, delivery = self.lookups.run, self._delivery
        self.attempts = AttemptRecorder(claims, loop, delivery, run, steps.report, state.note_sync)
        self.gaps = GapFilling(plan, loop, delivery, run, steps.report, fenced_pause_s)
        strategies = Strategies(delivery, self.attempts, self.gaps, state)
        self._instructions = Instructions(loop, steps, buffer, self.lookups, self.source, strategies)
        self._source_throttled, self._target_throttled = _LastMinute(loop.time), _LastMinute(loop.time)

    def _carry_out(self, copy: PartitionCopy, instruction: Instruction) -> None:
        self._instructions.carry_out(copy, instruction)

    def _fetch_soon(self) -> None:
        self.source.fetching.fetch_soon()

    @property
    def writer(self) -> BatchWriter:
        return self._delivery.writer

    @property
    def copies(self) -> Collection[PartitionCopy]:
        return self.steps.copies

    def start(self) -> None:
        if self.transactions is None:
            self.writer.start(self.target.targets)
        self.source.reader.start([copy.plan.source for copy in self.copies], {})

    def stop(self) -> None:
        """Fetch nothing more. What is in flight may still be acknowledged."""
        self.steps.report_all(events.Stop())
        self.lookups.stop()
        self.source.fetching.stop()
        self.source.reader.stop()

    def change_limits(self, limits: RateLimits) -> None:
        self.source.fetching.change_limits(limits)

    def check(self) -> None:
        """Look, once a second, for what no event reminds of: a short buffer, old attempts, gaps."""
        self.source.fetching.check_buffer(self.writer)
        for copy in self.attempts.old():
            self.steps.take(copy, events.RenewalDue())
        self.gaps.check()

    def load(self) -> TaskLoad:
        """The task's measurements, except the time that positions take to write."""
        reader = self.source.reader
        source, target = reader.traffic, self.writer.traffic
        return TaskLoad(
            sum(copy.fetch_position - copy.position for copy in self.copies),
            None,
            reader.fetches,
            reader.fetch_s * 1000,
            *source[:3],
            *target[:3],
            self._buffer.bytes_max,
            self._buffer.outstanding_bytes,
            source.throttled_s,
            target.throttled_s,
            self._source_throttled.noted(source.throttled_s),
            self._target_throttled.noted(target.throttled_s),
        )
