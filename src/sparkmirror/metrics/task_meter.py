"""Computes the metrics of copy tasks from what they measure of themselves. Counts grow over restarts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sparkmirror.metrics.readings import TaskReading, Traffic
from sparkmirror.metrics.windows import SampledValues
from sparkmirror.storage.progress import PartitionProgress, PartitionState, TaskLoad, TaskProgress

_NOTHING = (0, 0, 0, 0)


SILENT_AFTER_S: Final = 25.0
"""A task reports what it measures every 10 s, whether it copies anything or not."""


class Throttled(NamedTuple):
    """The share of the last minute in which brokers of each cluster throttled a task."""

    source: float = 0.0
    target: float = 0.0


class TaskState(NamedTuple):
    """State that all partitions of a task share. `is_silent`: the task reported before, and stopped."""

    throttled: Throttled = Throttled()
    is_silent: bool = False


class _Task:
    def __init__(self, report: TaskProgress, now: float) -> None:
        self.report = report
        self.earlier = _NOTHING
        """Bytes from and to the source and the target of the task's former lives."""
        self.commit = SampledValues()
        self.fetch = SampledValues()
        self.taken_at = now
        self._note(0, 0.0, now)

    def take(self, report: TaskProgress, now: float) -> None:
        before = self.report
        is_restarted = report.job_epoch != before.job_epoch or report.load.fetches < before.load.fetches
        if is_restarted:
            self.earlier = self.bytes
        self.report, self.taken_at = report, now
        self._note(*((0, 0.0) if is_restarted else (before.load.fetches, before.load.fetch_ms)), now)

    def _note(self, fetches: int, fetch_ms: float, now: float) -> None:
        """Start a window after so many Fetch requests, which took so long."""
        load = self.report.load
        if load.fetches > fetches:
            self.fetch.note((load.fetch_ms - fetch_ms) / (load.fetches - fetches), now)
        if load.commit_ms is not None:
            self.commit.note(load.commit_ms, now)

    @property
    def bytes(self) -> tuple[int, int, int, int]:
        its = _bytes(self.report.load)
        return tuple(before + now for before, now in zip(self.earlier, its, strict=True))  # type: ignore[return-value]


def _bytes(load: TaskLoad) -> tuple[int, int, int, int]:
    return load.source_in, load.source_out, load.target_in, load.target_out


class TaskMeter:
    """Measures copy tasks. Not thread-safe."""

    def __init__(self) -> None:
        self._tasks: dict[int, _Task] = {}
        self._failures: Counter[int] = Counter()
        self._retries: Counter[int] = Counter()

    def take(self, reports: Iterable[TaskProgress], now: float) -> None:
        """Take the latest report of every task; one that was taken before costs nothing."""
        for report in reports:
            task = self._tasks.get(report.task)
            if task is None:
                self._tasks[report.task] = _Task(report, now)
            elif report is not task.report:
                task.take(report, now)

    def throttled(self) -> Mapping[int, Throttled]:
        """Return how much the tasks that have reported were throttled."""
        loads = {number: task.report.load for number, task in self._tasks.items()}
        return {at: Throttled(load.source_throttled, load.target_throttled) for at, load in loads.items()}

    def states(self, now: float) -> Mapping[int, TaskState]:
        """Return those of the tasks that have reported; `now` is when reports were read last."""
        throttled = self.throttled()
        return {
            number: TaskState(throttled[number], now - it.taken_at > SILENT_AFTER_S)
            for number, it in self._tasks.items()
        }

    def count(self, report: PartitionProgress) -> None:
        """Count that one of its partitions began to retry, or to fail."""
        self._retries[report.task] += report.state is PartitionState.RETRYING
        self._failures[report.task] += report.state is PartitionState.FAILED

    def readings(self, tasks: int, now: float) -> Mapping[int, TaskReading]:
        """Return the readings of those tasks that have reported."""
        return {number: self._reading(number, now) for number in range(tasks) if number in self._tasks}

    def _reading(self, number: int, now: float) -> TaskReading:
        task = self._tasks[number]
        load, (source_in, source_out, target_in, target_out) = task.report.load, task.bytes
        return TaskReading(
            in_flight=load.in_flight,
            commit=task.commit.summary(now),
            fetch=task.fetch.summary(now),
            source=Traffic(source_in, source_out, load.source_connections, load.source_throttled_s),
            target=Traffic(target_in, target_out, load.target_connections, load.target_throttled_s),
            buffer_total=load.buffer_total,
            buffer_available=load.buffer_total - load.buffer_used,
            failures=self._failures[number],
            retries=self._retries[number],
        )
