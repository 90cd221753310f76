"""Holds latencies as a histogram that adds, subtracts and fits into a progress record."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

_GROWTH = 1.15
"""Each bucket is 15 % wider than the one before: a quantile is exact to about 7 %."""
_FIRST_MS = 0.25
_LOG_GROWTH = log(_GROWTH)


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """`counts` maps a bucket to how many records fell into it. Latencies are in ms."""

    counts: Mapping[int, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def merged(self, other: "LatencyHistogram") -> "LatencyHistogram":
        buckets = self.counts.keys() | other.counts.keys()
        return LatencyHistogram({b: self.counts.get(b, 0) + other.counts.get(b, 0) for b in buckets})

    def minus(self, earlier: "LatencyHistogram") -> "LatencyHistogram":
        """The latencies since `earlier`, an earlier state of the same histogram."""
        differences = {b: count - earlier.counts.get(b, 0) for b, count in self.counts.items()}
        return LatencyHistogram({b: count for b, count in differences.items() if count > 0})

    def quantile(self, q: float) -> float | None:
        """The latency in ms that a share `q` of the records did not exceed; None without records."""
        return self.quantiles(q)[0]

    def quantiles(self, *qs: float) -> tuple[float | None, ...]:
        """Several at once, in ascending order."""
        total, seen, found = self.total, 0, list[float]()
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            while seen and len(found) < len(qs) and seen >= qs[len(found)] * total:
                found.append(bucket_middle_ms(bucket))
        return (*found, *[None] * (len(qs) - len(found)))


EMPTY = LatencyHistogram({})


def bucket_of(latency_ms: float) -> int:
    """Latencies at or below 0.25 ms, clock skew included, share bucket 0."""
    if latency_ms <= _FIRST_MS:
        return 0
    return 1 + int(log(latency_ms / _FIRST_MS) / _LOG_GROWTH)


def bucket_middle_ms(bucket: int) -> float:
    return _FIRST_MS if bucket == 0 else _FIRST_MS * exp((bucket - 0.5) * _LOG_GROWTH)
