"""Computes rates over the last seconds, per topic, from the counters that copy tasks report."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import Final

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.latency import EMPTY, LatencyHistogram
from sparkmirror.storage.progress import PartitionProgress

WINDOW_S: Final = 5.0

Snapshot = Mapping[TopicPartition, PartitionProgress]


@dataclass(frozen=True, slots=True)
class Rates:
    """A topic, or all of them: rates per second over the window, lag in records now, latency in ms."""

    name: str
    partitions: int
    records_per_s: float
    bytes_per_s: float
    lag: int | None
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class _Change:
    """The change of a partition's counters since the start of the window."""

    topic: str
    records_per_s: float
    bytes_per_s: float
    lag: int | None
    latency: LatencyHistogram


class Throughput:
    """Holds the snapshots of the last seconds."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._snapshots: deque[tuple[float, Snapshot]] = deque()

    def observe(self, snapshot: Snapshot, now: float) -> None:
        self._snapshots.append((now, dict(snapshot)))
        while len(self._snapshots) > 2 and self._snapshots[1][0] <= now - self._window_s:
            self._snapshots.popleft()

    def topics(self) -> list[Rates]:
        """Return each source topic's rates, in alphabetical order."""
        changes = sorted(self._changes(), key=attrgetter("topic"))
        return [_rates(topic, list(of_topic)) for topic, of_topic in groupby(changes, attrgetter("topic"))]

    def total(self) -> Rates:
        return _rates("all", self._changes())

    def _changes(self) -> list[_Change]:
        if not self._snapshots:
            return []
        before, now = self._snapshots[0][1], self._snapshots[-1][1]
        return [_change(before.get(partition), progress) for partition, progress in now.items()]


def _change(before: PartitionProgress | None, now: PartitionProgress) -> _Change:
    if before is None or (before.task, before.job_epoch) != (now.task, now.job_epoch):
        # Counters that began inside the window: since when is unknown, so they make no rate yet.
        return _Change(now.source.topic, 0.0, 0.0, now.lag, now.latency)
    seconds = now.updated_at - before.updated_at
    if seconds <= 0:
        return _Change(now.source.topic, 0.0, 0.0, now.lag, now.latency.minus(before.latency))
    return _Change(
        now.source.topic,
        (now.records - before.records) / seconds,
        (now.bytes - before.bytes) / seconds,
        now.lag,
        now.latency.minus(before.latency),
    )


def _rates(name: str, changes: Sequence[_Change]) -> Rates:
    lags = [change.lag for change in changes if change.lag is not None]
    latency = reduce(LatencyHistogram.merged, (change.latency for change in changes), EMPTY)
    return Rates(
        name,
        len(changes),
        sum(change.records_per_s for change in changes),
        sum(change.bytes_per_s for change in changes),
        sum(lags) if lags else None,
        latency.quantile(0.5),
        latency.quantile(0.99),
    )
