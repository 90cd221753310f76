"""Summarizes values of the last 30 to 60 seconds, as Kafka's metrics do.

Kafka's `metrics.num.samples` is 2 and `metrics.sample.window.ms` 30,000 by default: a value is of the present
window and of the one before it. Callers pass any clock's seconds.

Pure.
"""

from math import inf, nan
from typing import NamedTuple

from sparkmirror.domain.latency import LatencyHistogram, bucket_middle_ms

WINDOW_S = 30.0
WINDOWS = 2


class Summary(NamedTuple):
    """Kafka's stats: the last value stays, the others are NaN without values in the windows."""

    last: float
    low: float
    high: float
    mean: float


def summary_of(last: float, low: float, high: float, total: float, count: int) -> Summary:
    """The mean is kept between `low` and `high`, which rounding could miss."""
    return Summary(last, low, high, min(max(low, total / count), high))


NO_VALUES = Summary(0.0, nan, nan, nan)


def summary_of_latencies(latencies: LatencyHistogram) -> Summary:
    """Exact to about 7 %, as the histogram is; 0 for the last one."""
    counts = latencies.counts
    if not counts:
        return NO_VALUES
    total = sum(count * bucket_middle_ms(bucket) for bucket, count in counts.items())
    return summary_of(
        0.0, bucket_middle_ms(min(counts)), bucket_middle_ms(max(counts)), total, latencies.total
    )


def is_over(began_at: float, now: float) -> bool:
    """Return whether the window is too old to count."""
    return now - began_at >= WINDOWS * WINDOW_S


class _Window:
    __slots__ = ("began_at", "count", "high", "low", "total")

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        self.count = 0
        self.total = 0.0
        self.low = inf
        self.high = -inf


class SampledValues:
    """Collects values. Not thread-safe."""

    __slots__ = ("_last", "_windows")

    def __init__(self) -> None:
        self._last = 0.0
        self._windows: list[_Window] = []

    def note(self, value: float, now: float) -> None:
        self._last = value
        if not self._windows or now - self._windows[-1].began_at >= WINDOW_S:
            self._windows = [*self._windows[1 - WINDOWS :], _Window(now)]
        window = self._windows[-1]
        window.count += 1
        window.total += value
        window.low, window.high = min(window.low, value), max(window.high, value)

    def summary(self, now: float) -> Summary:
        windows = [window for window in self._windows if not is_over(window.began_at, now)]
        if not windows:
            return NO_VALUES._replace(last=self._last)
        return summary_of(
            self._last,
            min(window.low for window in windows),
            max(window.high for window in windows),
            sum(window.total for window in windows),
            sum(window.count for window in windows),
        )
