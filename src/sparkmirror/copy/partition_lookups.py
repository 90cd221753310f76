"""Runs what blocks for partitions, in the background: stored positions, starts, and who wrote a batch.

Partitions that ask in the same turn of the loop are looked up together. What was cancelled is not reported.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Coroutine, Mapping

from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_events import (
    Event,
    LookUpFailed,
    PositionRead,
    PositionUnreadable,
    Resolved,
    ResolveFailed,
    ResumeReason,
    WritersKnown,
)
from sparkmirror.copy.partition_states import UNREACHABLE, USER_NEEDED
from sparkmirror.copy.resumption import Resumption
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.positions import Position

_log = logging.getLogger(__name__)


class PartitionLookups:
    """`report` is called with the result for each source partition, on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        state: StateWriter,
        resumption: Resumption,
        cycles: CycleDetection,
        report: Callable[[TopicPartition, Event], None],
    ) -> None:
        self._loop = loop
        self._state = state
        self._resumption = resumption
        self._cycles = cycles
        self._report = report
        self._tasks: set[asyncio.Task[None]] = set()
        self._reasons: dict[TopicPartition, ResumeReason] = {}
        """The reasons of the partitions that wait for their start."""
        self._unresolved: dict[TopicPartition, ResumeReason] = {}
        """The reasons among them that are not looked up yet."""
        self._writers: dict[TopicPartition, Collection[int]] = {}
        self._looking_up: asyncio.Task[None] | None = None

    def run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run it until `stop`. A bug in it goes to the loop's exception handler."""
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop itself holds its tasks weakly
        task.add_done_callback(self._done)
        return task

    def stop(self) -> None:
        """Report nothing any more of what is under way."""
        for task in self._tasks:
            task.cancel()
        self._resumption.end()
        self._looking_up = None
        self._reasons.clear()
        self._unresolved.clear()
        self._writers.clear()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "partition look-ups", "exception": error})

    # stored positions

    async def stored_positions(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Position]:
        """Read those of all the task's partitions, however long it takes; `partitions` hear of failures."""
        failures = 0
        while True:
            try:
                return await self._loop.run_in_executor(None, self._state.read_positions)
            except SparkmirrorError as error:
                failures += 1
                _log.warning("stored positions can't be read: %s; retrying", error)
                for partition in partitions:
                    self._report(partition, PositionUnreadable(error))
                await asyncio.sleep(UNREACHABLE.delay_s(failures, random.random()))

    def read_position(self, partition: TopicPartition) -> None:
        self.run(self._read_position(partition))

    async def _read_position(self, partition: TopicPartition) -> None:
        stored = await self.stored_positions([partition])
        self._report(partition, PositionRead(stored.get(partition)))

    # starts

    def resolve(self, partition: TopicPartition, reason: ResumeReason) -> None:
        if not self._unresolved:
            self._loop.call_soon(self._resolve_together)
        self._reasons[partition] = self._unresolved[partition] = reason

    def cancel_resolve(self, partition: TopicPartition) -> None:
        self._reasons.pop(partition, None)
        self._unresolved.pop(partition, None)

    def _resolve_together(self) -> None:
        reasons, self._unresolved = self._unresolved, {}
        if reasons:
            self.run(self._resolve(reasons))

    async def _resolve(self, reasons: Mapping[TopicPartition, ResumeReason]) -> None:
        starts = await self._loop.run_in_executor(None, self._resumption.starts, reasons)
        jitter = random.random()  # the same for all: those that fail together are retried together
        for partition, start in starts.items():
            if self._reasons.get(partition) is not reasons[partition]:
                continue
            del self._reasons[partition]
            if isinstance(start, SparkmirrorError):
                self._report(partition, ResolveFailed(start, jitter))
            else:
                self._report(partition, Resolved(start))

    # who wrote a batch

    def look_up(self, partition: TopicPartition, producer_ids: Collection[int]) -> None:
        self._writers[partition] = producer_ids
        if self._looking_up is None or self._looking_up.done():
            self._looking_up = self.run(self._look_up())

    def cancel_look_up(self, partition: TopicPartition) -> None:
        self._writers.pop(partition, None)

    async def _look_up(self) -> None:
        failures = 0
        while self._writers:
            wanted = dict(self._writers)
            try:
                await self._loop.run_in_executor(None, self._cycles.look_up, set().union(*wanted.values()))
            except SparkmirrorError as error:
                for partition in wanted.keys() & self._writers.keys():
                    self._report(partition, LookUpFailed(error))
                failures += 1
                backoff = UNREACHABLE if error.retriable else USER_NEEDED
                await asyncio.sleep(backoff.delay_s(failures, random.random()))
                continue
            failures = 0
            for partition, producer_ids in wanted.items():
                if self._writers.get(partition) is producer_ids:
                    del self._writers[partition]
                    self._report(partition, WritersKnown(self._cycles.unseen))
