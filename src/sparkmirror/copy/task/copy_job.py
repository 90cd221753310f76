"""Runs one copy job of a connector as a Spark job of one stage, with one Spark task per copy task."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.task.copy_task import copy_task
from sparkmirror.copy.task.outcomes import SCHEMA, EndReason, Outcome
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.quantities import counted
from sparkmirror.spark.host import JobState, SparkHost, SparkJob


class CopyJob:
    """`start` submits; `on_end` is called once, from the job's thread, with the tasks' outcomes."""

    def __init__(
        self,
        host: SparkHost,
        plans: Sequence[TaskPlan],
        on_end: Callable[[Sequence[Outcome] | Exception], None],
        page: str | None = None,
    ) -> None:
        """`page` is the mirror's page, which Spark's UI names."""
        self._host = host
        self._on_end = on_end
        self._job = _spark_job(plans, page)
        self._cancelled = False
        self._rows: Future[Sequence[Any]] = Future()

    @property
    def tag(self) -> str:
        """The tag by which Spark finds its Spark job."""
        return self._job.tag

    def start(self) -> None:
        self._rows = self._host.submit(self._job)
        self._rows.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Cancel tasks that did not follow their stop record; the workers end within seconds."""
        self._cancelled = True
        self._host.cancel(self.tag)

    def state(self, known_failures: int = 0) -> JobState | None:
        """The state of the Spark job; None before it started and after Spark has ended."""
        return self._host.state(self.tag, known_failures)

    def join(self, timeout_s: float) -> bool:
        """Whether the job has ended."""
        return not wait([self._rows], timeout_s).not_done

    def _ended(self, rows: "Future[Sequence[Any]]") -> None:
        error = rows.exception()
        if error is None:
            self._on_end([Outcome(row.task, EndReason(row.reason)) for row in rows.result()])
        elif self._cancelled or not self._host.alive():
            self._on_end(())  # expected, or the end of Spark is told by the session's owner
        else:
            self._on_end(SparkmirrorError(in_one_line(error)))  # an aborted job is submitted again


def _spark_job(plans: Sequence[TaskPlan], page: str | None) -> SparkJob:
    first, count = plans[0], len(plans)
    name = f"{first.flow} {first.connector}"
    partitions = counted(sum(len(plan.partitions) for plan in plans), "partition")
    chain = first.settings.transforms
    description = f"{name}, copy job {first.job_epoch}: {partitions} in {counted(count, 'task')}"
    return SparkJob(
        copy_task(plans),
        count,
        SCHEMA,
        f"{name} job epoch {first.job_epoch}".replace(",", " "),  # a tag has no comma
        description if page is None else f"{description}; {page}",
        pool=name,
        modules=() if chain is None else chain.modules,
    )


def in_one_line(error: BaseException) -> str:
    """The message of a JVM exception without its stack, which Spark's own log has."""
    lines = str(error).splitlines() or [repr(error)]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])
