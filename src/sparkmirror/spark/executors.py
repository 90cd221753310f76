"""Reads executors and the state of a running job from Spark's status store, through py4j.

The store exists without Spark's web interface. `defaultParallelism` is of no use on a cluster: it is 2 before
any executor has come.
"""

import logging
import re
import time
from collections.abc import Collection
from typing import Any, Final

from pyspark import SparkContext

from sparkmirror.spark.executor_archive import NO_PYTHON_MESSAGE, binary_suffix, python_version
from sparkmirror.spark.host import JobState
from sparkmirror.spark.private_members import is_decommissioned, jobs_with_tag, jvm_of, status_store

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 15.0
"""The longest wait for the first executor. Later ones get tasks later."""
_SETTLED_S: Final = 3.0
"""After this time without a new executor, the cluster seems to grant no more for now."""
_POLL_S: Final = 0.1
_DRIVER: Final = "driver"
_TASKS_MAX: Final = 10_000
_PYTHON_ERROR: Final = re.compile(r"Error from python worker:\n(.*?)\n *PYTHONPATH was:", re.DOTALL)


def executor_slots(context: SparkContext, leaving: Collection[str] = ()) -> int:
    """Return how many tasks the current executors can run, without those that are `leaving`."""
    return sum(int(each.maxTasks()) for each in _executors(context) if each.id() not in leaving)


def decommissioned(context: SparkContext) -> Collection[str]:
    """The ids of the executors that Spark is decommissioning."""
    return {name for each in _executors(context) if is_decommissioned(context, name := each.id())}


def await_executors(context: SparkContext) -> None:
    """Wait until no more executors come, or some seconds: clusters start them gradually."""
    began = changed = time.monotonic()
    slots = 0
    while (now := time.monotonic()) - began < _TIMEOUT_S:
        before, slots = slots, executor_slots(context)
        if slots != before:
            changed = now
        elif slots and now - changed >= _SETTLED_S:
            return
        time.sleep(_POLL_S)
    if not slots:
        memory = context.getConf().get("spark.executor.memory")
        _log.warning(
            "%s gave no executor in %.0f s, and tasks wait for one: are there free cores and %s of memory?",
            context.master,
            _TIMEOUT_S,
            memory,
        )


def job_state(
    context: SparkContext, tag: str, known_failures: int = 0, leaving: Collection[str] = ()
) -> JobState | None:
    """Ask for the last job with the tag; None before it has started. Raises what PySpark raises.

    The last failure is read only when there are more than `known_failures`; tasks on executors that are
    `leaving` are counted.
    """
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in jobs_with_tag(context, tag)[:1]]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    stage = next((found for found in stages if found), None)
    if stage is None:
        return None
    failures = stage.numFailedTasks
    reason = _last_failure(context, stage.stageId, failures) if failures > known_failures else None
    waiting = stage.numTasks - stage.numActiveTasks - stage.numCompletedTasks
    return JobState(stage.numTasks, waiting, failures, reason, _tasks_on(context, stage.stageId, leaving))


def explained(failure: str) -> str:
    """An executor's error in one line, with its remedy where that is known."""
    if NO_PYTHON_MESSAGE in failure:
        return (
            f"executors find no Python {python_version()} like the driver's (modules *{binary_suffix()}). "
            f"Install one there; if it isn't on their PATH, spark.pyspark.python names it"
        )
    error = _PYTHON_ERROR.search(failure)
    if error is not None:
        return f"Python on an executor: {error[1].strip().splitlines()[-1].strip()}"
    return next(iter(failure.strip().splitlines()), "no reason given")


def _last_failure(context: SparkContext, stage: int, failures: int) -> str | None:
    found = _tasks(context, stage, "FAILED", failures - 1, 1)
    message = found[0].errorMessage() if found else None
    return str(message.get()) if message is not None and message.isDefined() else None


def _tasks_on(context: SparkContext, stage: int, executors: Collection[str]) -> int:
    if not executors:
        return 0
    return sum(task.executorId() in executors for task in _tasks(context, stage, "RUNNING", 0, _TASKS_MAX))


def _executors(context: SparkContext) -> list[Any]:
    active_only = True
    return [it for it in _items(status_store(context).executorList(active_only)) if it.id() != _DRIVER]


def _tasks(context: SparkContext, stage: int, status: str, skipped: int, count: int) -> list[Any]:
    jvm = jvm_of(context)
    api = jvm.org.apache.spark.status.api.v1
    wanted = jvm.java.util.ArrayList()
    wanted.add(getattr(api.TaskStatus, status))
    return _items(status_store(context).taskList(stage, 0, skipped, count, api.TaskSorting.ID, wanted))


def _items(scala: Any) -> list[Any]:
    return [scala.apply(index) for index in range(scala.length())]
