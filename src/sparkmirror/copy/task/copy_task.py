"""Runs one copy task on an executor: the copy thread, and a main thread that pulses and watches the JVM.

Spark gives a cancelled task's Python worker no signal and lets it live for seconds. So the main thread yields
an empty Arrow batch now and then, which makes the JVM notice a kill, and watches the JVM's socket. When that
hangs up it stops the copy thread in order and exits. Spark does not fence either: a task copies nothing
before it has learned that its copy job may run, and stops itself when it learns of a newer one, or can't
ask any more.
"""

import contextlib
import gc
import logging
import math
import os
import random
import select
import signal
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.state_writer import report_failure
from sparkmirror.copy.task.job_watch import JobWatch
from sparkmirror.copy.task.outcomes import EndReason, Outcome
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.kafka.net.transport import hold_to
from sparkmirror.policies.rate_limits import RateLimits

_log = logging.getLogger(__name__)

PULSE_S = 0.5
_RESTART = Backoff(1.0, 60.0)
"""A bug that recurs at once must not keep a cluster busy with restarts."""
_FINAL = (EndReason.STOPPED, EndReason.SUPERSEDED)
_EXIT_TIMEOUT_S = 3.5
_GC_THRESHOLD = 50_000
"""Thousands of batches are alive at full speed and none is part of a reference cycle: collect seldom."""
_SWITCH_INTERVAL_S = 0.0001
"""The copy thread waits for no other thread longer than this: Python's 5 ms would show in the latency."""
_HANG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


def copy_task(plans: Sequence[TaskPlan]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over `spark.range(n)`: row i runs plan i, until a stop record.

    A task that fails reports that in its partitions' progress, waits, and raises: Spark then restarts it.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        for number in numbers:
            with _worker_settings(plans[number].task):
                yield from _RunningTask(plans[number]).run()

    return run


@contextlib.contextmanager
def _worker_settings(task: int) -> Iterator[None]:
    """Prepare this process for a copy task. In a user's Spark it may run their functions before and after."""
    threshold, interval, log = gc.get_threshold(), sys.getswitchinterval(), logging.getLogger()
    handlers = list(log.handlers)
    gc.set_threshold(_GC_THRESHOLD)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    level = log.level
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=f"task {task}: %(message)s")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
        log.setLevel(level)
        log.handlers[:] = handlers


class TaskFailedError(SparkmirrorError):
    """Makes Spark restart this task."""


class _RunningTask:
    def __init__(self, plan: TaskPlan) -> None:
        self._plan = replace(plan, attempt=_attempts_before())
        self._jvm = _lowest_socket()
        self._copy: CopyLoop | None = None
        self._limits = plan.rate_limits
        self._watch = JobWatch(plan, self._end, self._change_limits, self._forget_stored)
        self._ended = threading.Event()
        self._reason: EndReason | None = None
        self._failure: str | None = None
        # The read end reports a hang-up when the copy thread is done: poll() then waits for both at once.
        self._done, self._running = os.pipe()
        self._thread = threading.Thread(target=self._run, name="copy", daemon=True)

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield empty batches, and the outcome when the copy job has ended. Raises TaskFailedError."""
        handlers = self._install_signals()
        self._thread.start()
        try:
            yield from self._pulses(self._done, math.inf)
            self._thread.join()
            if self._failure is not None:
                failed = threading.Thread(target=self._report_failure, args=(self._failure,), daemon=True)
                failed.start()
                delay_s = _RESTART.delay_s(self._plan.attempt + 1, random.random())
                _log.error("restarting in %.0f s: %s", delay_s, self._failure)
                yield from self._pulses(None, time.monotonic() + delay_s)
        except GeneratorExit:
            self._leave()
            raise
        finally:
            self._watch.stop()
            os.close(self._done)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if self._reason in _FINAL:
            yield Outcome(self._plan.task, self._reason).to_batch()
        else:
            raise TaskFailedError(self._failure or "out of touch")

    def _pulses(self, done: int | None, deadline: float) -> Iterator[pa.RecordBatch]:
        """Yield empty batches until `done` hangs up, the deadline has passed, or a failed task must end."""
        poll = select.poll()
        for descriptor in (done, self._jvm):
            if descriptor is not None:
                poll.register(descriptor, _HANG_UP)
        while time.monotonic() < deadline:
            ready = {descriptor for descriptor, _ in poll.poll(PULSE_S * 1000)}
            if done in ready or (done is None and self._ended.is_set()):
                return
            if self._jvm in ready:
                self._leave()
            yield Outcome.empty_batch()

    def _run(self) -> None:
        try:
            try:
                hold_to(self._plan.meant, self._plan.connections)
            finally:
                self._watch.start()  # also behind a failure: a stop ends the wait for the restart
            # Spark may start a task again long after its copy job has ended.
            self._watch.await_answer()
            if not self._ended.is_set():
                self._copy = CopyLoop(self._plan)
                self._copy.change_limits(self._limits)
                if self._ended.is_set():
                    self._copy.stop()
                self._copy.run()
        except Exception:  # noqa: BLE001 - the copy task's top
            self._failure = traceback.format_exc()
        finally:
            os.close(self._running)

    def _end(self, reason: EndReason) -> None:
        self._reason = reason
        self._stop()

    def _change_limits(self, limits: RateLimits) -> None:
        self._limits = limits
        if self._copy is not None:
            self._copy.change_limits(limits)

    def _forget_stored(self) -> None:
        if self._copy is not None:
            self._copy.forget_stored()

    def _stop(self) -> None:
        self._ended.set()
        if self._copy is not None:
            self._copy.stop()

    def _report_failure(self, failure: str) -> None:
        try:
            report_failure(self._plan, failure.strip().splitlines()[-1])
        except SparkmirrorError as error:
            _log.warning("the failure can't be reported: %s", error)

    def _leave(self) -> None:
        """The JVM is gone or has killed the task: write the last positions, then end this process."""
        overdue = threading.Timer(_EXIT_TIMEOUT_S, os._exit, (1,))
        overdue.daemon = True
        overdue.start()
        self._stop()
        self._thread.join()
        os._exit(0)

    def _install_signals(self) -> dict[int, Any]:
        """Let the signals that end a process end it in order; returns the handlers before."""

        def leave(_: int, __: Any) -> None:
            self._leave()

        return {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}


def _attempts_before() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _lowest_socket() -> int | None:
    """The worker's socket to its JVM: the first one it opened. Called before any other is."""
    for descriptor in range(3, 1024):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    return None
