"""Reaches private members of PySpark and of Spark's classes where no public way exists; nothing else does.

`tests/spark/test_private_members.py` fails when a version of Spark changes one.
"""

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext


def running_gateway() -> Any:
    """The gateway to the JVM that this process has already; None without one."""
    return SparkContext._gateway  # noqa: SLF001 - a second JVM would be ignored by PySpark


def has_context() -> bool:
    """Whether this process has a SparkContext; the public way would make one."""
    return SparkContext._active_spark_context is not None  # noqa: SLF001 - likewise


def forget_gateway() -> None:
    """Let the next session of this process start a JVM: its last one has ended."""
    SparkContext._gateway = None  # noqa: SLF001 - or it would ask the dead one
    SparkContext._jvm = None  # noqa: SLF001 - likewise


def jvm_of(context: SparkContext) -> Any:
    """The JVM as py4j sees it; None where it is gone."""
    return context._jvm  # noqa: SLF001 - PySpark has no other way to it


def gateway_of(context: SparkContext) -> Any:
    """The gateway of the context, with which Java's arrays are made."""
    return context._gateway  # noqa: SLF001 - as PySpark's own SparkSession is made


def is_stopped(context: SparkContext) -> bool:
    """Whether the context was stopped, here or in its JVM, or the JVM is gone."""
    try:
        scala = scala_context(context)
        return scala is None or bool(scala.isStopped())
    except (Py4JError, OSError):
        return True


def status_store(context: SparkContext) -> Any:
    """Return the state of executors and tasks that Spark's pages show. It exists without the pages."""
    return scala_context(context).statusStore()


def jobs_with_tag(context: SparkContext, tag: str) -> list[int]:
    """The ids of the jobs, the last one first. PySpark's tracker knows groups only."""
    return sorted(scala_context(context).statusTracker().getJobIdsForTag(tag), reverse=True)


def is_decommissioned(context: SparkContext, executor: str) -> bool:
    """Whether Spark waits for the executor's tasks to end, and starts none there."""
    return bool(scala_context(context).taskScheduler().getExecutorDecommissionState(executor).isDefined())


def is_encrypted(client: Any) -> bool:
    """Whether a client of Spark Connect speaks TLS."""
    return bool(client._builder.secure)  # noqa: SLF001 - a token implies it, `use_ssl` alone is not public


def scala_context(context: SparkContext) -> Any:
    """Spark's own context in the JVM; None once it was stopped in this process."""
    java: Any = context._jsc  # noqa: SLF001 - PySpark's has a few of its methods
    return None if java is None else java.sc()
