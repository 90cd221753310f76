"""Logs tasks that wait for a slot and attempts that failed, which Spark itself does not report.

Spark retries a failed task at once and without end, and lets tasks without a slot wait silently.
"""

from collections.abc import Sequence
from typing import Protocol

from sparkmirror.domain.condition_timer import ConditionTimer
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.spark.executors import explained
from sparkmirror.spark.host import JobState

_WAITING_S = 10.0
"""A cancelled task of the last copy job holds its slot for some seconds."""
_REPEAT_S = 60.0
_REPORTED_BY_THE_TASK = "TaskFailedError"


class Watched(Protocol):
    """A CopyJob."""

    def state(self, known_failures: int) -> JobState | None: ...


class SparkWatch:
    """Watches Spark for one connector; one owner. `now` is any clock's seconds."""

    def __init__(self, log: FlowLog) -> None:
        self._log = log
        self._job: Watched | None = None
        self._failures = self._failures_logged = 0
        self._waits = ConditionTimer()
        self.waiting: Sequence[Trouble] = ()
        """The tasks that have no slot, if there are some for longer."""
        self._log_failures_at = float("-inf")

    def check(self, job: Watched, now: float) -> JobState | None:
        """Returns the job's state, where Spark tells it."""
        if job is not self._job:
            self._job, self._failures, self._failures_logged = job, 0, 0
            self._waits.end()
            self.waiting = ()
        state = job.state(self._failures)
        if state is not None:
            self._check_failures(state, now)
            self._check_waiting(state, now)
        return state

    def _check_failures(self, state: JobState, now: float) -> None:
        self._failures = state.failures
        failure = state.last_failure
        if failure is None or _REPORTED_BY_THE_TASK in failure or now < self._log_failures_at:
            return
        self._log_failures_at = now + _REPEAT_S
        new, self._failures_logged = state.failures - self._failures_logged, state.failures
        self._log.warning("Spark lost %d attempts of tasks and retries them: %s", new, explained(failure))

    def _check_waiting(self, state: JobState, now: float) -> None:
        waited_s = self._waits.for_s(now, holds=state.waiting > 0)
        if not state.waiting:
            self.waiting = ()
        if waited_s < _WAITING_S:
            return
        if not self.waiting:
            self._log.warning(
                "%d of %d tasks wait for a slot of Spark, and their partitions are not copied",
                state.waiting,
                state.tasks,
            )
        self.waiting = [_without_slot(state)]


def _without_slot(state: JobState) -> Trouble:
    waiting = f"{state.waiting} of {state.tasks}"
    reason = f"{waiting} wait for a slot of Spark, and their partitions are not copied"
    remedy = "give Spark more cores, or end what holds them"
    return Trouble(Cause(TroubleWord.WAITING, Subject.TASK, reason, remedy), "tasks")
