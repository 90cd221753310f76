"""What an executor runs for one slice: the copy thread, and a main thread that pulses and watches.

Spark gives a cancelled task's Python worker no signal and lets it live for seconds. So the main thread yields
an empty Arrow batch now and then, which makes the JVM notice a kill, and watches the JVM's socket. When that
hangs up it stops the copy thread in order and exits. Spark does not fence either: a task that learns of a
newer generation, or can't ask any more, stops itself.
"""

import gc
import logging
import os
import select
import signal
import stat
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from sparkmirror.domain.copy_plan import TaskPlan
from sparkmirror.engine.copy_loop import CopyLoop
from sparkmirror.engine.generation_watch import GenerationWatch
from sparkmirror.engine.outcomes import EndReason, Outcome

_log = logging.getLogger(__name__)

PULSE_S = 0.5
_EXIT_TIMEOUT_S = 3.5
_GC_THRESHOLD = 50_000
"""Thousands of batches are alive at full speed and none is part of a cycle: look for cycles seldom."""
_SWITCH_INTERVAL_S = 0.0001
"""The copy thread waits for no other thread longer than this: Python's 5 ms would show in the latency."""
_HANG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


def copy_task(plans: Sequence[TaskPlan]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over `spark.range(n)`: row i runs plan i, until it's told to stop."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        for number in numbers:
            yield from _run_plan(plans[number])

    return run


def _run_plan(plan: TaskPlan) -> Iterator[pa.RecordBatch]:
    try:
        task = _RunningTask(plan)
    except Exception:  # noqa: BLE001 - the copy task's top: Spark would start it four times a second, for ever
        yield Outcome(plan.task, EndReason.BUG, traceback.format_exc()).to_batch()
        return
    yield from task.pulses()
    yield task.outcome().to_batch()


class _RunningTask:
    def __init__(self, plan: TaskPlan) -> None:
        gc.set_threshold(_GC_THRESHOLD)
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=f"task {plan.task}: %(message)s")
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._plan = plan
        self._jvm = _lowest_socket()
        self._copy = CopyLoop(plan)
        self._watch = GenerationWatch(plan, self._end)
        self._reason = EndReason.STOPPED
        self._bug: str | None = None
        # The read end reports a hang-up when the copy thread is done: poll() then waits for both at once.
        self._done, self._running = os.pipe()
        self._thread = threading.Thread(target=self._run, name="copy", daemon=True)

    def pulses(self) -> Iterator[pa.RecordBatch]:
        """Empty batches until the copy thread has ended."""
        self._install_signals()
        self._watch.start()
        self._thread.start()
        poll = select.poll()
        poll.register(self._done, _HANG_UP)
        if self._jvm is not None:
            poll.register(self._jvm, _HANG_UP)
        try:
            while True:
                ready = {descriptor for descriptor, _ in poll.poll(PULSE_S * 1000)}
                if self._done in ready:
                    return
                if self._jvm in ready:
                    self._leave()
                yield Outcome.empty_batch()
        except GeneratorExit:
            self._leave()
            raise
        finally:
            self._watch.stop()
            os.close(self._done)

    def outcome(self) -> Outcome:
        self._thread.join()
        if self._bug is not None:
            return Outcome(self._plan.task, EndReason.BUG, self._bug)
        return Outcome(self._plan.task, self._reason, "")

    def _run(self) -> None:
        try:
            self._copy.run()
        except Exception:  # noqa: BLE001 - the copy task's top
            # A bug becomes an outcome that the driver shows.
            self._bug = traceback.format_exc()
            _log.exception("the copy thread failed")
        finally:
            os.close(self._running)

    def _end(self, reason: EndReason) -> None:
        self._reason = reason
        self._copy.stop()

    def _leave(self) -> None:
        """The JVM is gone or has killed the task: write the last positions, then end this process."""
        overdue = threading.Timer(_EXIT_TIMEOUT_S, os._exit, (1,))
        overdue.daemon = True
        overdue.start()
        self._copy.stop()
        self._thread.join()
        os._exit(0)

    def _install_signals(self) -> None:
        def leave(_: int, __: Any) -> None:
            self._leave()

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, leave)


def _lowest_socket() -> int | None:
    """The worker's socket to its JVM: the first one it opened. Called before any other is."""
    for descriptor in range(3, 1024):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    return None
