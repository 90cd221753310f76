"""How much each partition of a connector is copied, and how far it's behind: from what tasks report.

Fed with progress records as they come. A task counts from 0 when it starts; what it reports once more is
counted once. A partition that reports nothing has copied nothing.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.progress import PartitionProgress

_SMOOTHING_S = 30.0
"""Bursts that are over sooner are none of the assignment's business."""
_CATCH_UP_S = 60.0
"""A partition that is behind is taken to want this pace in addition: what makes up for it in that time."""
_BEHIND_S = 10.0
"""Seconds of a partition's own pace; what is under way between two reports is less."""
_RECORD_BYTES = 1024.0
"""Of a partition of which nothing has been copied yet."""


class _Report(NamedTuple):
    job_epoch: int
    bytes: int
    backlog_bytes: float


class _Rate(NamedTuple):
    """Bytes per second, an exponentially weighted mean over the time that was seen: an even one at first."""

    bytes_s: float = 0.0
    seen_s: float = 0.0

    def then(self, copied: float, passed_s: float) -> "_Rate":
        """After so many bytes in so many seconds more."""
        seen_s = self.seen_s + passed_s
        # Of all weights given so far, which don't add up to 1 until much more than _SMOOTHING_S was seen.
        weight = math.expm1(-passed_s / _SMOOTHING_S) / math.expm1(-seen_s / _SMOOTHING_S)
        return _Rate(self.bytes_s + weight * (copied / passed_s - self.bytes_s), seen_s)


class LoadMeter:
    """Keeps a few numbers for each partition; knows no clock."""

    def __init__(self) -> None:
        self._reports: dict[TopicPartition, _Report] = {}
        self._rates: dict[TopicPartition, _Rate] = {}
        self._taken_at: float | None = None

    @property
    def rates(self) -> Mapping[TopicPartition, float]:
        """Bytes per second, smoothed, of each partition that was ever reported."""
        return {partition: rate.bytes_s for partition, rate in self._rates.items()}

    def take(self, dealt: Assignment, reports: Iterable[PartitionProgress], now: float) -> None:
        """The latest report of each partition that has reported since the last call; `now` in seconds.

        Partitions that nobody copies any more are forgotten.
        """
        partitions = {partition for task in dealt for partition in task}
        copied = {
            report.source: float(self._copied_since(report))
            for report in reports
            if report.source in partitions
        }
        passed_s = None if self._taken_at is None else now - self._taken_at
        self._taken_at = now
        self._reports = {
            partition: report for partition, report in self._reports.items() if partition in partitions
        }
        if passed_s:  # the first reports only say where counting begins
            self._smooth(copied, passed_s)

    def load(self, dealt: Assignment) -> Mapping[TopicPartition, float]:
        """Bytes per second that each partition would like to be copied at.

        One that is behind would go faster, but not faster than its whole task does now.
        """
        wanted: dict[TopicPartition, float] = {}
        rates = self.rates
        for task in dealt:
            known = [partition for partition in task if partition in rates]
            together = math.fsum(rates[partition] for partition in known)
            for partition in known:
                pace = rates[partition] + self._reports[partition].backlog_bytes / _CATCH_UP_S
                wanted[partition] = min(pace, together)
        return wanted

    def is_behind(self, partition: TopicPartition) -> bool:
        """Whether its backlog is more than it copies in some seconds."""
        report = self._reports.get(partition)
        backlog_bytes = 0.0 if report is None else report.backlog_bytes
        rate = self._rates.get(partition, _Rate())
        return backlog_bytes > _BEHIND_S * max(rate.bytes_s, _RECORD_BYTES)

    def _copied_since(self, report: PartitionProgress) -> int:
        before = self._reports.get(report.source)
        self._reports[report.source] = _Report(report.job_epoch, report.bytes, _backlog_bytes(report))
        if before is None or before.job_epoch != report.job_epoch or report.bytes < before.bytes:
            return report.bytes
        return report.bytes - before.bytes

    def _smooth(self, copied: Mapping[TopicPartition, float], passed_s: float) -> None:
        self._rates = {
            partition: self._rates.get(partition, _Rate()).then(copied.get(partition, 0.0), passed_s)
            for partition in self._reports
        }


def _backlog_bytes(report: PartitionProgress) -> float:
    """What is known to be there and not copied yet. An error explains a backlog: load is not its cause."""
    if report.error is not None or not report.lag:
        return 0.0
    size = report.bytes / report.records if report.records else _RECORD_BYTES
    return report.lag * size
