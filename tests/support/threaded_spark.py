"""A Spark session whose tasks are threads of this process, for mirrors whose clusters are in memory."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, cast

from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.task.job_watch import JobWatch
from sparkmirror.copy.task.outcomes import EndReason, Outcome
from sparkmirror.spark.host import JobState, SparkJob, run_in_thread
from sparkmirror.spark.session import Session
from sparkmirror.spark.spark_on_demand import SparkOnDemand


class ThreadedSpark:
    """Has of `SparkOnDemand` what a mirror needs."""

    failure = None
    is_starting = False

    def session(self) -> "Future[Session]":
        made: Future[Session] = Future()
        made.set_result(cast("Session", _Session()))
        return made

    def cancel_start(self) -> None: ...

    def close(self) -> None: ...

    def jvm(self) -> None: ...

    def as_demanded(self) -> SparkOnDemand:
        return cast("SparkOnDemand", self)


class _Session:
    page = None

    def __init__(self) -> None:
        self.host = ThreadedHost()
        self.slots = self.host.slots()

    def require_private(self, _: object) -> None: ...


class ThreadedHost:
    """A SparkHost."""

    def __init__(self) -> None:
        self._loops: list[CopyLoop] = []

    def submit(self, job: SparkJob) -> "Future[Sequence[Any]]":
        (plans,) = (cell.cell_contents for cell in job.task.__closure__ or ())
        return run_in_thread(job.tag, lambda: self._collect(plans))

    def cancel(self, tag: str) -> None:  # noqa: ARG002 - a protocol's
        for loop in self._loops:
            loop.stop()

    def slots(self) -> int:
        return 16

    def state(self, tag: str, known_failures: int = 0) -> JobState | None:  # noqa: ARG002 - likewise
        return None

    def alive(self) -> bool:
        return True

    def setting(self, key: str) -> str | None:  # noqa: ARG002 - likewise
        return None

    def _collect(self, plans: Sequence[TaskPlan]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        threads = [
            threading.Thread(target=lambda plan=plan: outcomes.append(self._run(plan)), daemon=True)
            for plan in plans
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcomes

    def _run(self, plan: TaskPlan) -> Outcome:
        loop, reasons = CopyLoop(plan), list[EndReason]()
        self._loops.append(loop)

        def end(reason: EndReason) -> None:
            reasons.append(reason)
            loop.stop()

        watch = JobWatch(plan, end, loop.change_limits, loop.forget_stored)
        watch.start()
        watch.await_answer()
        if not reasons:
            loop.run()
        watch.stop()
        self._loops.remove(loop)
        return Outcome(plan.task, reasons[0] if reasons else EndReason.STOPPED)
