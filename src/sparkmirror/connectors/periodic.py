"""A thread that runs periodic jobs until it is stopped. A failed job is logged and runs again in its turn."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from sparkmirror.connectors.flow_log import FlowLog
from sparkmirror.connectors.schedule import Job, Schedule
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import SparkmirrorError, UnfitTopicError

T = TypeVar("T")

_STOP_TIMEOUT_S: Final = 7.5
"""All that end at the same time together. Spark's JVM takes up to 2 s more; supervisors give ten before they
kill."""
_MAY_NOT_RUN_S: Final = 0.5
_UNREACHABLE: Final = Backoff(1.0, 30.0)


class PeriodicThread:
    """`prepare` runs first and is repeated with back-off until it succeeds; it returns the jobs."""

    def __init__(
        self, name: str, log: FlowLog, prepare: Callable[[], Iterable[Job]], finish: Callable[[], None]
    ) -> None:
        self.name = name
        self._log = log
        self._prepare = prepare
        self._finish = finish
        self.failure: SparkmirrorError | None = None
        """Why it ended by itself: a topic on a cluster is unfit for what is kept there."""
        self._stopping = threading.Event()
        self._schedule: Schedule | None = None
        self._may_run: Callable[[], bool] = lambda: True
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def may_run(self) -> bool:
        """What `run_only_while` was told says so."""
        return self._may_run()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def run_only_while(self, may_run: Callable[[], bool]) -> None:
        """Leave jobs out while that is not so. Before `start`."""
        self._may_run = may_run

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; `join` waits."""
        self._stopping.set()

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended. One that still prepares is not waited for: it has nothing to end in order."""
        if self._schedule is None:
            return True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._log.warning("%s did not end in time", self.name)
            return False
        return True

    def hasten(self, job: str, delay_s: float) -> None:
        """Run a job sooner than planned. Called by the jobs themselves."""
        assert self._schedule is not None
        self._schedule.hasten(job, time.monotonic() + delay_s)

    def _run(self) -> None:
        jobs = self._persist()
        if jobs is not None:
            self._schedule = Schedule(jobs, time.monotonic())
            while not self._stopping.wait(self._schedule.wait_s(time.monotonic())):
                for job in self._schedule.take_due(time.monotonic()):
                    self._attempt(job)
        self._finish()

    def _persist(self) -> Iterable[Job] | None:
        """None when there is nothing to run: stopped before that, or a failure that lasts."""
        try:
            return persist(
                self._prepared,
                self._stopping,
                self._log,
                gives_up=lambda error: isinstance(error, UnfitTopicError),
            )
        except SparkmirrorError as error:
            self._log.error("%s", error)
            self.failure = error
            return None

    def _attempt(self, job: Job) -> None:
        if self._stopping.is_set() or not self._may_run():
            return
        try:
            job.action()
        except SparkmirrorError as error:
            self._log.warning("%s failed: %s", job.name, error)
        except Exception:  # noqa: BLE001 - a bug in one job must not end the others, nor the orderly stop
            self._log.exception("%s failed", job.name)

    def _prepared(self) -> Iterable[Job] | None:
        """None when it is stopped before it may run."""
        while not self._may_run():
            if self._stopping.wait(_MAY_NOT_RUN_S):
                return None
        return self._prepare()


def persist(
    action: Callable[[], T],
    stopping: threading.Event,
    log: "FlowLog | logging.Logger",
    *,
    gives_up: Callable[[SparkmirrorError], bool] = lambda _: False,
) -> T | None:
    """What the action returns when it works at last; None when it's to stop before that.

    Raises SparkmirrorError when that is one to give up for.
    """
    failures = 0
    while not stopping.is_set():
        try:
            return action()
        except SparkmirrorError as error:
            if gives_up(error):
                raise
            if stopping.is_set():
                break
            failures += 1
            delay_s = _UNREACHABLE.delay_s(failures, 0.5)
            log.warning("%s; trying again in %.0f s", error, delay_s)
            stopping.wait(delay_s)
    return None


def begin(threads: Iterable[PeriodicThread], may_run: Callable[[], bool]) -> None:
    """`may_run` is asked before anything is done."""
    for thread in threads:
        thread.run_only_while(may_run)
        thread.start()


def end(threads: Sequence[PeriodicThread]) -> None:
    """Return when all have ended, or after 7.5 s; who takes longer is said."""
    for thread in threads:
        thread.stop()
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
