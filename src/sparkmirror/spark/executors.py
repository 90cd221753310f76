"""Reads executors and the state of a running job from Spark's status store, through py4j.

The store exists without Spark's web interface. `defaultParallelism` is of no use on a cluster: it is 2 before
any executor has come.
"""

import logging
import re
import time
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from sparkmirror.spark.executor_archive import NO_PYTHON_MESSAGE, binary_suffix, python_version

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 15.0
"""The longest wait for the first executor. Later ones get tasks later."""
_SETTLED_S: Final = 3.0
"""After this time without a new executor, the cluster seems to grant no more for now."""
_POLL_S: Final = 0.1
_DRIVER: Final = "driver"
_PYTHON_ERROR: Final = re.compile(r"Error from python worker:\n(.*?)\n *PYTHONPATH was:", re.DOTALL)


class JobStatus(NamedTuple):
    """A job of one stage: its tasks that wait for a slot, and its failed attempts."""

    tasks: int
    waiting: int
    failures: int
    last_failure: str | None = None


def executor_slots(context: SparkContext) -> int:
    """Return how many tasks the current executors can run at the same time."""
    active_only = True
    found = _store(context).executorList(active_only)
    executors = [found.apply(index) for index in range(found.length())]
    return sum(int(each.maxTasks()) for each in executors if each.id() != _DRIVER)


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


def job_status(context: SparkContext, group: str, known_failures: int = 0) -> JobStatus | None:
    """Ask for the last job of the group; None before it has started, and when Spark does not respond.

    The last failure is read only when there are more than `known_failures`.
    """
    try:
        return _job_status(context, group, known_failures)
    except (Py4JError, OSError):
        return None  # the owner of the session notices that its JVM has ended


def _job_status(context: SparkContext, group: str, known_failures: int) -> JobStatus | None:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)[:1]]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    stage = next((found for found in stages if found), None)
    if stage is None:
        return None
    failures = stage.numFailedTasks
    reason = _last_failure(context, stage.stageId, failures) if failures > known_failures else None
    waiting = stage.numTasks - stage.numActiveTasks - stage.numCompletedTasks
    return JobStatus(stage.numTasks, waiting, failures, reason)


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
    jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no other way to its status store
    api = jvm.org.apache.spark.status.api.v1
    failed = jvm.java.util.ArrayList()
    failed.add(api.TaskStatus.FAILED)
    found = _store(context).taskList(stage, 0, failures - 1, 1, api.TaskSorting.ID, failed)
    message = found.apply(0).errorMessage() if found.length() else None
    return str(message.get()) if message is not None and message.isDefined() else None


def _store(context: SparkContext) -> Any:
    jsc: Any = context._jsc  # noqa: SLF001 - likewise
    return jsc.sc().statusStore()
