"""Defines what a mirror asks of Spark; `classic_host` and `connect_host` answer."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from pyarrow import RecordBatch


class SparkJob(NamedTuple):
    """A job of one stage, whose task i gets the number i. `tag` is unique, `description` is shown by Spark.

    Jobs of the same `pool` share slots where Spark's scheduler is fair. Executors need the `modules`, beside
    this package.
    """

    task: Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]
    tasks: int
    schema: str
    tag: str
    description: str
    pool: str | None = None
    modules: Collection[str] = ()

    def rows(self, spark: Any) -> list[Any]:
        """Run it on a session and wait for its rows. One stage: with a shuffle, Spark would restart tasks."""
        rows: list[Any] = (
            spark.range(0, self.tasks, 1, self.tasks).mapInArrow(self.task, self.schema).collect()
        )
        return rows


class JobState(NamedTuple):
    """A job's tasks: those that wait for a slot, and failed attempts.

    `leaving` counts those that run on executors which Spark is decommissioning.
    """

    tasks: int
    waiting: int
    failures: int
    last_failure: str | None = None
    leaving: int = 0


class SparkHost(Protocol):
    """A Spark session as a mirror sees it. Safe in any thread."""

    def submit(self, job: SparkJob) -> "Future[Sequence[Any]]":
        """Run the job on a thread of its own. The future has its rows, or what Spark raised."""
        ...

    def cancel(self, tag: str) -> None:
        """Cancel the job with this tag; the workers end within seconds."""
        ...

    def slots(self) -> int:
        """Return how many tasks may run at the same time, as of now.

        Raises SparkmirrorError when Spark does not respond.
        """
        ...

    def state(self, tag: str, known_failures: int = 0) -> JobState | None:
        """Return the state of the job; None before it has started, and where Spark does not tell.

        The last failure is read only when there are more than `known_failures`.
        """
        ...

    def alive(self) -> bool:
        """Return False once the session or its driver is gone."""
        ...

    def setting(self, key: str) -> str | None:
        """Return a `spark.*` setting of the session."""
        ...


def run_in_thread(name: str, work: Callable[[], Sequence[Any]]) -> "Future[Sequence[Any]]":
    """Run `work` on a daemon thread, which no process waits for at its end."""
    future: Future[Sequence[Any]] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the future's owner decides
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
