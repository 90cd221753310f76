"""Notices partitions that have something to copy and do not get on, though nothing says why."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.storage.progress import PartitionProgress

PATIENCE_S = 60.0

_Key = tuple[ConnectorName, TopicPartition]


class Stall(NamedTuple):
    """The partition stands where it stood `seconds` ago; None when it moves again."""

    report: PartitionProgress
    seconds: float | None


class StalledPartitions:
    """Tells of each partition's stall once, and of its end. One that reports an error has told why."""

    def __init__(self) -> None:
        self._stands_since: dict[_Key, tuple[int | None, float]] = {}
        self._told: set[_Key] = set()

    def look(self, reports: Collection[PartitionProgress], now: float) -> Iterator[Stall]:
        """`now` is any clock's seconds."""
        for report in reports:
            key = report.connector, report.source
            position, since = self._stands_since.setdefault(key, (report.position, now))
            is_waiting = bool(report.lag) and report.error is None
            if not is_waiting or position != report.position:
                self._stands_since[key] = (report.position, now)
                if key in self._told:
                    self._told.remove(key)
                    yield Stall(report, None)
            elif key not in self._told and now - since >= PATIENCE_S:
                self._told.add(key)
                yield Stall(report, now - since)
