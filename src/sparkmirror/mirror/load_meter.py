"""Measures how fast each partition of a connector is copied and how far it is behind, from progress records.

A task counts from 0 when it starts; a report that is repeated counts once. A partition without a report has
copied nothing.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.progress import PartitionProgress

_SMOOTHING_S = 30.0
"""Shorter bursts do not affect the assignment."""
_CATCH_UP_S = 60.0
"""A partition that is behind is given the additional rate that catches up in this time."""
_BEHIND_S = 10.0
"""Seconds of a partition's own rate; batches in flight between two reports are less."""
_RECORD_BYTES = 1024.0
"""The assumed record size of a partition that has copied nothing yet."""


class _Report(NamedTuple):
    job_epoch: int
    bytes: int
    backlog_bytes: float


class _Rate(NamedTuple):
    """Bytes per second, an exponentially weighted mean over the observed time; a plain mean at first."""

    bytes_s: float = 0.0
    seen_s: float = 0.0

    def then(self, copied: float, passed_s: float) -> "_Rate":
        """The rate after `copied` more bytes in `passed_s` more seconds."""
        seen_s = self.seen_s + passed_s
        # Relative to all weights so far, which add up to 1 only after much more than _SMOOTHING_S.
        weight = math.expm1(-passed_s / _SMOOTHING_S) / math.expm1(-seen_s / _SMOOTHING_S)
        return _Rate(self.bytes_s + weight * (copied / passed_s - self.bytes_s), seen_s)


class LoadMeter:
    """Keeps a few numbers for each partition; the caller passes the time."""

    def __init__(self) -> None:
        self._reports: dict[TopicPartition, _Report] = {}
        self._rates: dict[TopicPartition, _Rate] = {}
        self._taken_at: float | None = None

    @property
    def rates(self) -> Mapping[TopicPartition, float]:
        """Bytes per second, smoothed, of each partition that was ever reported."""
        return {partition: rate.bytes_s for partition, rate in self._rates.items()}

    def take(self, assignment: Assignment, reports: Iterable[PartitionProgress], now: float) -> None:
        """The latest report of each partition that has reported since the last call; `now` in seconds.

        Partitions without a task are forgotten.
        """
        partitions = {partition for task in assignment for partition in task}
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
        if passed_s:  # the first reports only give the start values
            self._smooth(copied, passed_s)

    def load(self, assignment: Assignment) -> Mapping[TopicPartition, float]:
        """The rate in bytes per second that each partition could use.

        A partition that is behind could use more than its rate, but not more than its whole task copies now.
        """
        wanted: dict[TopicPartition, float] = {}
        rates = self.rates
        for task in assignment:
            known = [partition for partition in task if partition in rates]
            together = math.fsum(rates[partition] for partition in known)
            for partition in known:
                wanted_rate = rates[partition] + self._reports[partition].backlog_bytes / _CATCH_UP_S
                wanted[partition] = min(wanted_rate, together)
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
    """The known backlog; 0 for a partition with an error, which explains the backlog without load."""
    if report.error is not None or not report.lag:
        return 0.0
    size = report.bytes / report.records if report.records else _RECORD_BYTES
    return report.lag * size
