"""What Spark keeps to itself, said in the log: tasks that wait for a slot, attempts that failed, other slots.

Spark starts a failed task again at once and for ever, and lets tasks without a slot wait without a word.
"""

from typing import Protocol

from sparkmirror.connectors.flow_log import FlowLog
from sparkmirror.spark.executors import JobStatus, explained

_WAITING_S = 10.0
"""A cancelled task of the last generation holds its slot for some seconds."""
_SAY_AGAIN_S = 60.0
_TOLD_BY_THE_TASK = "TaskFailedError"


class Watched(Protocol):
    """A CopyJob."""

    def status(self, known_failures: int) -> JobStatus | None: ...


class SparkWatch:
    """For one connector, by one owner. `now` is any clock's seconds."""

    def __init__(self, log: FlowLog) -> None:
        self._log = log
        self._job: Watched | None = None
        self._failures = self._failures_said = 0
        self._waits_since: float | None = None
        self._said_waiting = False
        self._say_failures_at = float("-inf")

    def look(self, job: Watched, now: float) -> None:
        if job is not self._job:
            self._job, self._failures, self._failures_said = job, 0, 0
            self._waits_since, self._said_waiting = None, False
        status = job.status(self._failures)
        if status is not None:
            self._look_at_failures(status, now)
            self._look_at_waiting(status, now)

    def _look_at_failures(self, status: JobStatus, now: float) -> None:
        self._failures = status.failures
        failure = status.last_failure
        if failure is None or _TOLD_BY_THE_TASK in failure or now < self._say_failures_at:
            return
        self._say_failures_at = now + _SAY_AGAIN_S
        new, self._failures_said = status.failures - self._failures_said, status.failures
        self._log.warning(
            "Spark lost %d attempts of tasks and starts them again: %s", new, explained(failure)
        )

    def _look_at_waiting(self, status: JobStatus, now: float) -> None:
        if not status.waiting:
            self._waits_since, self._said_waiting = None, False
            return
        self._waits_since = now if self._waits_since is None else self._waits_since
        if not self._said_waiting and now - self._waits_since >= _WAITING_S:
            self._said_waiting = True
            self._log.warning(
                "%d of %d tasks wait for a slot of Spark, and their partitions are not copied",
                status.waiting,
                status.tasks,
            )
