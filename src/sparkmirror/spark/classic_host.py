"""Runs jobs on a SparkSession whose driver JVM is behind py4j."""

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.spark import private_members
from sparkmirror.spark.executors import decommissioned, executor_slots, job_state
from sparkmirror.spark.host import JobState, SparkJob, run_in_thread
from sparkmirror.spark.shipping import ShippedModules, zipped_module
from sparkmirror.spark.slots import allocated_slots, is_local

_GONE: Final = (Py4JError, OSError, AttributeError)
"""The errors of PySpark once the JVM is gone, or the context was stopped."""


class ClassicHost:
    """A SparkHost. Tags and descriptions belong to the submitting thread, which is this host's own."""

    def __init__(self, spark: SparkSession, *, is_shared: bool = False) -> None:
        """`is_shared`: somebody else submits jobs too, for whom a slot stays free."""
        self.spark = spark
        self.context: SparkContext = spark.sparkContext
        self._is_shared = is_shared
        self._modules = ShippedModules()

    def submit(self, job: SparkJob) -> "Future[Sequence[Any]]":
        return run_in_thread(job.tag, lambda: self._run(job))

    def _run(self, job: SparkJob) -> Sequence[Any]:
        self.context.addJobTag(job.tag)
        self.context.setJobDescription(job.description)
        # Interrupting the JVM's task threads makes them spin instead of ending sooner.
        self.context.setInterruptOnCancel(False)
        # Without a file of pools, a host's scheduler warns of each.
        if job.pool is not None and not self._is_shared:
            self.context.setLocalProperty("spark.scheduler.pool", job.pool)
        self.ship(job.modules)
        return job.rows(self.spark)

    def ship(self, modules: Collection[str]) -> None:
        """Let jobs from now on import these modules on executors. On this machine they can as it is."""
        if is_local(str(self.context.master)):
            return
        for module in self._modules.missing(modules):
            if self._is_shared:  # the session's own: others of the context don't get it
                self.spark.addArtifacts(str(zipped_module(module)), pyfile=True)
            else:
                self.context.addPyFile(str(zipped_module(module)))

    def cancel(self, tag: str) -> None:
        with suppress(*_GONE):
            self.context.cancelJobsWithTag(tag)

    def slots(self) -> int:
        try:
            if self._allocated is not None:
                return self._allocated
            is_in_driver = is_local(str(self.context.master))
            slots = (
                int(self.context.defaultParallelism)
                if is_in_driver
                else executor_slots(self.context, self._leaving())
            )
        except _GONE as error:
            raise SparkmirrorError("Spark does not respond") from error
        # Copy tasks never end: with all slots taken, no job of anybody else would ever run.
        return slots - 1 if self._is_shared and slots > 1 else slots

    @cached_property
    def _allocated(self) -> int | None:
        return allocated_slots(self.setting)

    def _leaving(self) -> Collection[str]:
        """Executors that are being decommissioned; asked for only where Spark does that."""
        return decommissioned(self.context) if self._decommissions else ()

    @cached_property
    def _decommissions(self) -> bool:
        return (self.setting("spark.decommission.enabled") or "").lower() == "true"

    def state(self, tag: str, known_failures: int = 0) -> JobState | None:
        try:
            return job_state(self.context, tag, known_failures, self._leaving())
        except _GONE:
            return None  # the owner of the session notices that its JVM has ended

    def alive(self) -> bool:
        return not private_members.is_stopped(self.context)

    def setting(self, key: str) -> str | None:
        value: str | None = self.spark.conf.get(key, None)
        return value

    def accumulator(self, zero: Any, of: Any) -> Any:
        """Make an accumulator, whose values arrive here as tasks end."""
        return self.context.accumulator(zero, of)
