"""Detects partitions that stall without an error, and tasks that do not report their partitions."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.metrics.looks import STARTING_S
from sparkmirror.storage.progress import JobEpoch, PartitionProgress

STALLED_AFTER_S = 60.0
SILENT_AFTER_S = STARTING_S
"""Every partition reports within a second of its task's start, and a task's worker starts within seconds."""

_Key = tuple[ConnectorName, TopicPartition]


class Stall(NamedTuple):
    """The partition's position has not changed for `seconds`; None when it advances again."""

    report: PartitionProgress
    seconds: float | None


class StalledPartitions:
    """Yields each partition's stall once, and its end. One that reports an error is not stalled."""

    def __init__(self, after_s: float = STALLED_AFTER_S) -> None:
        self._after_s = after_s
        self._unchanged_since: dict[_Key, tuple[int | None, float]] = {}
        self._reported: set[_Key] = set()

    def check(
        self,
        reports: Collection[PartitionProgress],
        now: float,
        unchanged_s: Callable[[PartitionProgress], float] = lambda _: 0.0,
        throttled: Collection[int] = (),
    ) -> Iterator[Stall]:
        """`now` is any clock's seconds. `unchanged_s` tells for how long a first report is known to hold.

        Partitions of `throttled` tasks wait for their turn.
        """
        for report in reports:
            key = report.connector, report.source
            known = self._unchanged_since.get(key) or (report.position, now - unchanged_s(report))
            position, since = self._unchanged_since[key] = known
            is_waiting = bool(report.lag) and report.error is None and report.task not in throttled
            if not is_waiting or position != report.position:
                self._unchanged_since[key] = (report.position, now)
                if key in self._reported:
                    self._reported.remove(key)
                    yield Stall(report, None)
            elif key not in self._reported and now - since >= self._after_s:
                self._reported.add(key)
                yield Stall(report, now - since)


class Silence(NamedTuple):
    """`missing` partitions of a copy job have not reported yet; 0 ends a silence."""

    job_epoch: JobEpoch
    missing: int


class SilentPartitions:
    """Yields each copy job's silence once, and its end."""

    def __init__(self) -> None:
        self._seen_at: dict[JobEpoch, float] = {}
        self._reported: set[JobEpoch] = set()

    def check(
        self, job_epochs: Collection[JobEpoch], reports: Collection[PartitionProgress], now: float
    ) -> Iterator[Silence]:
        """`now` is any clock's seconds."""
        self._seen_at = {job_epoch: self._seen_at.get(job_epoch, now) for job_epoch in job_epochs}
        self._reported &= self._seen_at.keys()
        reported = Counter((report.connector, report.job_epoch) for report in reports)
        for job_epoch, seen_at in self._seen_at.items():
            missing = job_epoch.partitions - reported[job_epoch.connector, job_epoch.number]
            is_silent = missing > 0 and not job_epoch.stopped
            if is_silent and job_epoch not in self._reported and now - seen_at >= SILENT_AFTER_S:
                self._reported.add(job_epoch)
                yield Silence(job_epoch, missing)
            elif not is_silent and job_epoch in self._reported:
                self._reported.remove(job_epoch)
                yield Silence(job_epoch, 0)
