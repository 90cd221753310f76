"""Periodic jobs on a clock that is handed in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Job:
    """Runs `action` every `interval_s` (infinite: once), the first time after `first_after_s`."""

    name: str
    interval_s: float
    action: Callable[[], None]
    first_after_s: float = 0.0


class Schedule:
    """Jobs at a fixed delay: a late job is not made up for. Jobs without an interval are left out."""

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

    def wait_s(self, now: float) -> float | None:
        """How long until the next job; None when none is planned."""
        soonest = min((at for at, _ in self._next.values()), default=inf)
        return max(0.0, soonest - now) if soonest < inf else None
