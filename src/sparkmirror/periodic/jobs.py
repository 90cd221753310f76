"""A thread that runs periodic jobs until it is stopped.

A failed job runs again in its turn, and one that lacks a right less and less often.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from math import inf
from typing import Final, TypeVar

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import (
    AuthorizationError,
    SameClusterError,
    SparkmirrorError,
    SupersededError,
    UnfitTopicError,
)
from sparkmirror.domain.troubles import REPEATED_EVERY_S
from sparkmirror.periodic.denials import DENIED_AGAIN
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.periodic.job_failures import JobFailures, Listener

T = TypeVar("T")

_STOP_TIMEOUT_S: Final = 7.5
"""The limit for all threads together. Spark's JVM takes up to 2 s more; supervisors kill after ten."""
_MAY_NOT_RUN_S: Final = 0.5
_UNREACHABLE: Final = Backoff(1.0, 30.0)


@dataclass(frozen=True, slots=True)
class Job:
    """Runs `action` every `interval_s` (infinite: once), the first time after `first_after_s`."""

    name: str
    interval_s: float
    action: Callable[[], None]
    first_after_s: float = 0.0


class Schedule:
    """Runs jobs at a fixed delay: a late run is not made up for. Jobs without an interval are left out."""

    def __init__(self, jobs: Iterable[Job], now: float) -> None:
        self._next = {job.name: (now + job.first_after_s, job) for job in jobs}

    def take_due(self, now: float) -> list[Job]:
        """The jobs to run now, in order of their time; each is set to its next time."""
        due = sorted((at, name) for name, (at, _) in self._next.items() if at <= now)
        jobs = [self._next[name][1] for _, name in due]
        for job in jobs:
            self._next[job.name] = (now + job.interval_s, job)
        return jobs

    def hasten(self, name: str, at: float) -> None:
        """Run a job at `at` instead, if that is sooner."""
        planned, job = self._next[name]
        self._next[name] = (min(planned, at), job)

    def postpone(self, name: str, at: float) -> None:
        """Run a job at `at` instead, if that is later."""
        planned, job = self._next[name]
        self._next[name] = (max(planned, at), job)

    def wait_s(self, now: float) -> float | None:
        """The time until the next job; None when none is planned."""
        soonest = min((at for at, _ in self._next.values()), default=inf)
        return max(0.0, soonest - now) if soonest < inf else None


class PeriodicThread:
    """`prepare` runs first and is repeated with back-off until it succeeds; it returns the jobs."""

    def __init__(
        self, name: str, log: FlowLog, prepare: Callable[[], Iterable[Job]], finish: Callable[[], None]
    ) -> None:
        self.name = name
        self._log = log
        self._failures = JobFailures(log)
        self._denials: dict[str, tuple[str, int]] = {}
        """Why jobs lack a right, and how often in a row."""
        self._prepare = prepare
        self._finish = finish
        self.failure: SparkmirrorError | None = None
        """Why it ended by itself: a topic is unfit for what is kept there, or another process copies."""
        self._stopping = threading.Event()
        self._schedule: Schedule | None = None
        self._may_run: Callable[[], bool] | None = None
        self._is_elected: Callable[[], bool] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def failing(self) -> str | None:
        """The last error of a job that fails now, as the log has it."""
        return self._failures.now

    def tell_failures(self, listener: Listener) -> None:
        """Call the listener whenever jobs begin to fail for longer, or work again. Before `start`."""
        self._failures.listener = listener

    @property
    def may_run(self) -> bool:
        """The result of the callable that `run_only_while` got."""
        return self._may_run is None or self._may_run()

    @property
    def is_elected(self) -> bool:
        """Whether an election says that this process runs it; else the copy jobs' numbers decide."""
        return self._is_elected is not None and self._is_elected()

    def run_only_while(
        self, may_run: Callable[[], bool], is_elected: Callable[[], bool] | None = None
    ) -> None:
        """Skip jobs while `may_run` returns False, by default the result of an election. Before `start`."""
        self._may_run = may_run
        self._is_elected = is_elected or may_run

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish instead of a thread that was never started."""
        self._finish()

    def stop(self) -> None:
        """Ask it to end; `join` waits."""
        self._stopping.set()

    def join(self, timeout_s: float) -> bool:
        """Whether the thread has ended. A thread that still prepares has nothing to finish: no wait."""
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
        """Return None if there is nothing to run: it was stopped, or failed for good."""
        try:
            return persist(
                self._prepared,
                self._stopping,
                self._log,
                gives_up=lambda error: isinstance(error, UnfitTopicError | SameClusterError),
                note=lambda error: self._failures.not_begun(self.name, error),
            )
        except SparkmirrorError as error:
            self._fail(error)
            return None

    def _attempt(self, job: Job) -> None:
        if self._stopping.is_set() or not self.may_run:
            return
        began = time.monotonic()
        try:
            job.action()
        except SupersededError as error:
            self._fail(error)
        except CancelledError:  # the process ends while Spark starts
            self._stopping.set()
        except SparkmirrorError as error:
            self._failures.failed(job.name, error, time.monotonic())
            if isinstance(error, AuthorizationError):
                self._postpone(job.name, str(error))
        except Exception as error:  # noqa: BLE001 - a bug in one job must not end the others, nor the orderly stop
            self._log.exception("%s failed", job.name)
            self._failures.bug(job.name, error)
        else:
            now = time.monotonic()
            self._denials.pop(job.name, None)
            self._failures.worked(job.name, now)
            self._log.debug("%s took %.3f s", job.name, now - began)

    def _postpone(self, job: str, why: str) -> None:
        assert self._schedule is not None
        before, count = self._denials.get(job, ("", 0))
        count = count + 1 if before == why else 1
        self._denials[job] = why, count
        self._schedule.postpone(job, time.monotonic() + DENIED_AGAIN.delay_s(count, 0.5))

    def _fail(self, error: SparkmirrorError) -> None:
        self._log.error("%s", error)
        self._failures.not_begun(self.name, error)
        self.failure = error
        self._stopping.set()

    def _prepared(self) -> Iterable[Job] | None:
        """The jobs; None when the thread is stopped before it may run."""
        while not self.may_run:
            if self._stopping.wait(_MAY_NOT_RUN_S):
                return None
        return self._prepare()


def persist(
    action: Callable[[], T],
    stopping: threading.Event,
    log: "FlowLog | logging.Logger",
    *,
    gives_up: Callable[[SparkmirrorError], bool] = lambda _: False,
    note: Callable[[SparkmirrorError | None], None] = lambda _: None,
) -> T | None:
    """Retry the action with back-off and return its result; None when `stopping` is set before it succeeds.

    An error that does not pass by itself is logged once a minute. `note` gets each error, then None.
    Raises a SparkmirrorError for which `gives_up` returns True.
    """
    failures, said, said_at = 0, "", 0.0
    while not stopping.is_set():
        try:
            result = action()
        except SparkmirrorError as error:
            if gives_up(error):
                raise
            note(error)
            if stopping.is_set():
                break
            failures += 1
            delay_s = _UNREACHABLE.delay_s(failures, 0.5)
            now, is_known = time.monotonic(), not error.retriable and str(error) == said
            if not is_known or now - said_at >= REPEATED_EVERY_S:
                said, said_at = str(error), now
                log.warning("%s; retrying in %.0f s", error, delay_s)
            stopping.wait(delay_s)
        else:
            note(None)
            return result
    return None


def start_all(
    threads: Iterable[PeriodicThread],
    may_run: Callable[[], bool] | None = None,
    is_elected: Callable[[], bool] | None = None,
) -> None:
    """Start the threads; each runs jobs only while `may_run`, the result of an election, returns True."""
    for thread in threads:
        if may_run is not None:
            thread.run_only_while(may_run, is_elected)
        thread.start()


def stop_all(threads: Sequence[PeriodicThread]) -> None:
    """Stop the threads; return when all have ended, or after 7.5 s with a warning for each that has not."""
    for thread in threads:
        thread.stop()
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
