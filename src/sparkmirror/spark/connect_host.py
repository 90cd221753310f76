"""Runs jobs on a session of Spark Connect, whose driver is a server; imports nothing of it before that."""

import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from sparkmirror.spark.host import JobState, SparkJob, run_in_thread
from sparkmirror.spark.private_members import is_encrypted
from sparkmirror.spark.shipping import ShippedModules, zipped_module
from sparkmirror.spark.slots import UNBOUNDED, allocated_slots, local_slots

_RETRIES: Final = 5
"""Some 17 seconds. By default a client calls a server that is gone for ten minutes."""
_OWN_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_GONE: Final = ("INVALID_HANDLE", "UNAVAILABLE")
"""Texts of errors when the server has no such session any more, or there is no server."""


class ConnectHost:
    """A SparkHost in a session of its own on the server of the user's. Executors are not told of."""

    def __init__(self, users: Any, slots: int | None = None) -> None:
        """`users` is their session. `slots` limits tasks where the server's settings don't."""
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - needs grpc

        self._users = users
        self.spark = users.newSession()
        self.spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        self.spark.registerProgressHandler(self._note)
        self._given_slots = slots
        self._is_gone = False
        self._modules = ShippedModules()
        self._running: dict[str, JobState] = {}

    def submit(self, job: SparkJob) -> "Future[Sequence[Any]]":
        return run_in_thread(job.tag, lambda: self._run(job))

    def _run(self, job: SparkJob) -> Sequence[Any]:
        self.spark.addTag(job.tag)
        try:
            self.ship(job.modules)
            return job.rows(self.spark)
        except Exception as error:
            self._is_gone = self._is_gone or any(word in str(error) for word in _GONE)
            raise
        finally:
            self._running.pop(job.tag, None)

    def ship(self, modules: Collection[str]) -> None:
        """Let jobs of this session import these modules from now on."""
        for module in self._modules.missing(modules):
            self.spark.addArtifacts(str(zipped_module(module)), pyfile=True)

    def cancel(self, tag: str) -> None:
        with suppress(Exception):  # a session that is gone has no jobs
            self.spark.interruptTag(tag)

    def slots(self) -> int:
        return self._slots

    @cached_property
    def _slots(self) -> int:
        if self._given_slots is not None:
            return self._given_slots
        if (allocated := allocated_slots(self.setting)) is not None:
            return allocated
        local = local_slots(self.setting("spark.master") or "")
        # Copy tasks never end: with all slots taken, no query of anybody else would ever run.
        return UNBOUNDED if local is None else max(1, local - 1)

    def state(self, tag: str, known_failures: int = 0) -> JobState | None:  # noqa: ARG002 - failures are not told
        return self._running.get(tag)

    def _note(self, stages: Iterable[Any], inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG002 - Spark's signature
        """Take a job's progress, on the thread that waits for its rows, whose name is the tag."""
        tasks = sum(stage.num_tasks for stage in stages)
        ended = sum(stage.num_completed_tasks for stage in stages)
        if tasks and not done:
            waiting = max(0, tasks - ended - inflight_tasks)
            self._running[threading.current_thread().name] = JobState(tasks, waiting, 0)

    def alive(self) -> bool:
        return not (self._is_gone or self._users.is_stopped or self.spark.is_stopped)

    @property
    def is_private(self) -> bool:
        """Whether nobody else can read what goes to the server."""
        client = self._users.client
        return client.host in _OWN_MACHINE or is_encrypted(client)

    def setting(self, key: str) -> str | None:
        value: str | None = self.spark.conf.get(key, None)
        return value

    def close(self) -> None:
        """End the own session. `stop` would also end a server that the user's session has started."""
        is_there = self.alive()
        with suppress(Exception):  # likewise
            if is_there:
                self.spark.client.release_session()
        with suppress(Exception):
            self.spark.client.close()
