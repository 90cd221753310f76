"""Notices partitions of which nobody reports: their task can't begin, or hangs."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from sparkmirror.storage.progress import JobEpoch, PartitionProgress

PATIENCE_S = 20.0
"""Every partition reports within a second of its task's start, and a task's worker starts within seconds."""


class Silence(NamedTuple):
    """`missing` partitions of a copy job have not reported yet; 0 ends what was told before."""

    job_epoch: JobEpoch
    missing: int


class SilentPartitions:
    """Tells of each copy job's silence once, and of its end."""

    def __init__(self) -> None:
        self._seen_at: dict[JobEpoch, float] = {}
        self._told: set[JobEpoch] = set()

    def look(
        self, job_epochs: Collection[JobEpoch], reports: Collection[PartitionProgress], now: float
    ) -> Iterator[Silence]:
        """`now` is any clock's seconds."""
        self._seen_at = {job_epoch: self._seen_at.get(job_epoch, now) for job_epoch in job_epochs}
        self._told &= self._seen_at.keys()
        reported = Counter((report.connector, report.job_epoch) for report in reports)
        for job_epoch, seen_at in self._seen_at.items():
            missing = job_epoch.partitions - reported[job_epoch.connector, job_epoch.number]
            is_silent = missing > 0 and not job_epoch.stopped
            if is_silent and job_epoch not in self._told and now - seen_at >= PATIENCE_S:
                self._told.add(job_epoch)
                yield Silence(job_epoch, missing)
            elif not is_silent and job_epoch in self._told:
                self._told.remove(job_epoch)
                yield Silence(job_epoch, 0)
