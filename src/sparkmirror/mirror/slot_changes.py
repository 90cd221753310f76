"""Tells when the partitions of a connector are to be reassigned because of Spark's slots and executors."""

from collections.abc import Sequence
from typing import Final, Protocol

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.condition_timer import ConditionTimer
from sparkmirror.domain.troubles import Trouble
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.spark.host import JobState
from sparkmirror.spark.spark_watch import SparkWatch, Watched

_SETTLED_S: Final = 4.0
"""The time that a changed number of slots must last: most clusters replace a dead executor sooner."""
_WAITED_S: Final = 60.0
"""The time after which tasks that wait for a slot are done without: others copy their partitions."""
_TRIED_AGAIN: Final = Backoff(600.0, 7200.0)
"""The time after which as many tasks are started again, which may have to wait again."""


class Jobs(Protocol):
    """CopyJobs."""

    @property
    def job(self) -> Watched | None: ...

    @property
    def can_move(self) -> bool: ...

    def has_other_slots(self) -> bool: ...

    def limit_slots(self, slots: int | None) -> None: ...


class SlotChanges:
    """Decides when slots call for a reassignment. `check` is due about every two seconds."""

    def __init__(self, log: FlowLog, jobs: Jobs) -> None:
        self._watch = SparkWatch(log)
        self._jobs = jobs
        self._other = ConditionTimer()
        self._waiting = ConditionTimer()
        self._waits = 0
        self._limited_until: float | None = None

    def check(self, now: float) -> str | None:
        """Log what Spark does not report; return why partitions are to be reassigned, None if they are not.

        Raises SparkmirrorError when Spark does not respond.
        """
        job = self._jobs.job
        if job is None:
            self._other.end()
            self._waiting.end()
            return None
        state = self._watch.check(job, now)
        if state is not None and state.leaving and self._jobs.can_move:
            return f"Spark decommissions executors with {state.leaving} of {state.tasks} tasks"
        if self._has_waited(state, now):
            assert state is not None
            self._limit(state.tasks - state.waiting, now)
            return f"{state.waiting} of {state.tasks} tasks got no slot in {_WAITED_S:.0f} s"
        if self._limited_until is not None and now >= self._limited_until:
            self._limited_until = None
            self._jobs.limit_slots(None)
        return "the number of Spark's slots changed" if self._has_other_slots(now) else None

    @property
    def waiting(self) -> Sequence[Trouble]:
        """The tasks that have no slot, if there are some for longer."""
        return self._watch.waiting

    def _has_waited(self, state: JobState | None, now: float) -> bool:
        """Whether some tasks have waited for long while others run."""
        waits = state is not None and 0 < state.waiting < state.tasks
        return _passes(self._waiting, _WAITED_S, now, holds=waits)

    def _limit(self, slots: int, now: float) -> None:
        self._waits += 1
        self._limited_until = now + _TRIED_AGAIN.delay_s(self._waits, 0.5)
        self._jobs.limit_slots(slots)

    def _has_other_slots(self, now: float) -> bool:
        return _passes(self._other, _SETTLED_S, now, holds=self._jobs.has_other_slots())


def _passes(held: ConditionTimer, limit_s: float, now: float, *, holds: bool) -> bool:
    """Whether it has held for so long; then it is measured again."""
    if held.for_s(now, holds=holds) < limit_s:
        return False
    held.end()
    return True
