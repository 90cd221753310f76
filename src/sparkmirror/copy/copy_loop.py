"""Runs a copy task's event loop: opens it, keeps its state durable, and stops it in order.

The parts that copy are wired in `CopyParts`; `StateWriter` writes positions.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress

from sparkmirror.copy.copy_parts import CopyParts
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import PositionRead, TransactionLost
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.policies.rate_limits import RateLimits

_REPORT_INTERVAL_S = 1.0
_DRAIN_TIMEOUT_S = 3.0
"""An orderly stop waits this long for acknowledgements of what is in flight."""

_DRAIN_POLL_S = 0.01
FENCED_PAUSE_S = 5.0
"""A copy job's end may take this long to reach a task that a newer one has fenced."""


class CopyLoop:
    """`run` blocks its thread until `stop`, which any thread may call. A bug in it raises out of `run`."""

    def __init__(
        self,
        plan: TaskPlan,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        executor: ThreadPoolExecutor | None = None,
        coordinator: Executor | None = None,
        fenced_pause_s: float = FENCED_PAUSE_S,
    ) -> None:
        """`executor` runs what blocks, `coordinator` the calls about transactions, one at a time.

        The loop and both executors are closed when `run` ends.
        """
        self._loop = loop or asyncio.new_event_loop()
        self._executor = executor or ThreadPoolExecutor(thread_name_prefix="sparkmirror-io")
        self._stopping = asyncio.Event()
        self._bug: BaseException | None = None
        self._state = StateWriter(plan)
        cycles = CycleDetection(plan)
        self.parts = CopyParts(plan, self._loop, self._state, cycles, fenced_pause_s, coordinator)
        self._transactions = self.parts.transactions
        self._has_started = False
        self._writing: asyncio.Future[None] | None = None
        """The newest write of what `StateWriter.collect` gave."""

    def run(self) -> None:
        self._loop.set_default_executor(self._executor)
        self._loop.set_exception_handler(self._on_bug)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._loop.close()
        if self._bug is not None:
            raise self._bug

    def stop(self) -> None:
        """End in order: positions of everything acknowledged are written before `run` returns.

        Any thread may call it, also when `run` has ended.
        """
        self._call(self._stopping.set)

    def change_limits(self, limits: RateLimits) -> None:
        """Keep to these from now on; any thread may call it."""
        self._call(self.parts.change_limits, limits)

    def forget_stored(self) -> None:
        """Write all positions and reports again: their topics were lost. Any thread may call it."""
        self._call(self._state.forget_stored)

    def _call(self, function: Callable[..., object], *values: object) -> None:
        """Call it on the loop's thread, unless `run` has ended."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *values)

    def _on_bug(self, _: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        self._bug = self._bug or (error if isinstance(error, BaseException) else RuntimeError(str(context)))
        self._stopping.set()

    async def _main(self) -> None:
        self.parts.start()
        self.parts.lookups.run(self._open())
        reports = self._loop.call_later(_REPORT_INTERVAL_S, self._report)
        await self._stopping.wait()
        reports.cancel()
        await self._finish()

    async def _open(self) -> None:
        """Start all partitions at their stored positions."""
        parts, transactions = self.parts, self._transactions
        if transactions is not None:
            await transactions.open(self._reopen)
        sources = [copy.plan.source for copy in parts.copies]
        stored = await parts.lookups.stored_positions(sources)
        self._has_started = True
        if transactions is not None:
            transactions.start()
        for source in sources:
            parts.steps.report(source, PositionRead(stored.get(source)))

    def _reopen(self) -> None:
        """A transaction is lost, everything since the last commit is aborted: start all partitions again."""
        if self._stopping.is_set():
            return
        self.parts.writer.stop()
        self.parts.lookups.stop()
        self.parts.steps.report_all(TransactionLost())
        self.parts.lookups.run(self._open())

    async def _finish(self) -> None:
        parts = self.parts
        parts.stop()
        unanswered = parts.writer.doubtful()
        parts.writer.discard_unsent()
        deadline = self._loop.time() + _DRAIN_TIMEOUT_S
        if self._transactions is not None:
            await self._transactions.finish(_DRAIN_TIMEOUT_S)
        while not parts.writer.is_idle and self._loop.time() < deadline:  # noqa: ASYNC110 - bounded, and once
            await asyncio.sleep(_DRAIN_POLL_S)
        unanswered |= parts.writer.unanswered()
        parts.writer.stop()
        if self._writing is not None:
            await self._writing
        if self._has_started:
            await self._loop.run_in_executor(None, self._state.close, self._copies())
            await parts.attempts.close(unanswered)
        parts.gaps.close()

    def _report(self) -> None:
        """Check and report once a second."""
        self._loop.call_later(_REPORT_INTERVAL_S, self._report)
        if self._stopping.is_set():
            return
        self.parts.check()
        write = self._state.collect(self._copies(), self._loop.time(), self.parts.load())
        if write is not None:
            self._writing = self._loop.run_in_executor(None, write)

    def _copies(self) -> Collection[PartitionCopy]:
        return list(self.parts.copies)
