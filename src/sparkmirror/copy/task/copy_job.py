"""Runs one copy job of a connector as a Spark job of one stage, with one Spark task per copy task."""

import logging
import threading
from collections.abc import Callable, Sequence

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.task.copy_task import copy_task
from sparkmirror.copy.task.outcomes import SCHEMA, EndReason, Outcome
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.spark.executors import JobStatus, job_status
from sparkmirror.spark.session import Session

_log = logging.getLogger(__name__)


class CopyJob:
    """`start` submits; `on_end` is called once, from the job's thread, with the tasks' outcomes."""

    def __init__(
        self,
        session: Session,
        plans: Sequence[TaskPlan],
        on_end: Callable[[Sequence[Outcome] | Exception], None],
    ) -> None:
        self._session = session
        self._plans = plans
        self._on_end = on_end
        first = plans[0]
        self._pool = f"{first.flow} {first.connector}"
        self.job_group = f"{self._pool} job epoch {first.job_epoch}"
        """The tag by which Spark finds its Spark jobs."""
        self._cancelled = False
        self._thread = threading.Thread(target=self._run, name=self.job_group, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Cancel tasks that did not follow their stop record. Their workers end within seconds."""
        self._cancelled = True
        self._session.spark.sparkContext.cancelJobGroup(self.job_group)

    def status(self, known_failures: int = 0) -> JobStatus | None:
        """The state of the Spark job; None before it started and after Spark has ended."""
        return job_status(self._session.spark.sparkContext, self.job_group, known_failures)

    def join(self, timeout_s: float) -> bool:
        """Whether the job has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            result: Sequence[Outcome] | Exception = self._collect()
        except Exception as error:  # noqa: BLE001 - an aborted job is resubmitted, and its cause shown
            # A cancelled job ends with an error too, which is expected.
            result = () if self._cancelled else SparkmirrorError(in_one_line(error))
        self._on_end(result)

    def _collect(self) -> Sequence[Outcome]:
        spark = self._session.spark
        # Interrupting the JVM's task threads makes them spin instead of ending sooner.
        spark.sparkContext.setJobGroup(self.job_group, self.job_group, interruptOnCancel=False)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._pool)
        chain = self._plans[0].settings.transforms
        if chain is not None:
            self._session.ship(chain.modules)
        count = len(self._plans)
        rows = spark.range(0, count, 1, count).mapInArrow(copy_task(self._plans), SCHEMA).collect()
        return [Outcome(row.task, EndReason(row.reason)) for row in rows]


def in_one_line(error: Exception) -> str:
    """The message of a JVM exception without its stack, which Spark's own log has."""
    lines = str(error).splitlines() or [repr(error)]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])
