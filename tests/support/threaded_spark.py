"""A Spark session whose tasks are threads of this process, for mirrors whose clusters are in memory."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.task.job_watch import JobWatch
from sparkmirror.copy.task.outcomes import EndReason, Outcome
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
    slots = 16

    def __init__(self) -> None:
        self.spark = self.sparkContext = self
        self._loops: list[CopyLoop] = []

    def require_private(self, _: object) -> None: ...

    def setJobGroup(self, *_: object, **__: object) -> None: ...  # noqa: N802 - Spark's name

    def setLocalProperty(self, *_: object) -> None: ...  # noqa: N802 - Spark's name

    def cancelJobGroup(self, _: str) -> None:  # noqa: N802 - Spark's name
        for loop in self._loops:
            loop.stop()

    def statusTracker(self) -> "_Session":  # noqa: N802 - Spark's name
        return self

    def getJobIdsForGroup(self, _: str) -> list[int]:  # noqa: N802 - Spark's name
        return []

    def range(self, *_: int) -> "_Session":
        return self

    def mapInArrow(self, task: Callable[..., Any], _: object) -> "_Job":  # noqa: N802 - Spark's name
        (plans,) = (cell.cell_contents for cell in task.__closure__ or ())
        return _Job(plans, self._loops)


class _Job:
    def __init__(self, plans: Sequence[TaskPlan], loops: list[CopyLoop]) -> None:
        self._plans = plans
        self._loops = loops

    def collect(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        threads = [
            threading.Thread(target=lambda plan=plan: outcomes.append(self._run(plan)), daemon=True)
            for plan in self._plans
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
