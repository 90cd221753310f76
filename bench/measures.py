"""Computes windows, medians, spreads and percentiles from a run's samples. Pure.

A sample is what the probe saw at one moment. Throughput and CPU are taken between two samples, never from a
side's own report, so every side is measured the same way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """`records` on the target, and CPU seconds used so far, `at_s` seconds after the side was started."""

    at_s: float
    records: int
    cpu_s: float
    source_broker_cpu_s: float = 0.0
    target_broker_cpu_s: float = 0.0
    machine_cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """Differences of two samples."""

    records: int
    seconds: float
    cpu_s: float
    source_broker_cpu_s: float
    target_broker_cpu_s: float
    machine_cpu_s: float

    @property
    def other_cpu_s(self) -> float:
        """Used by whatever else ran on the machine, the probe included."""
        known = self.cpu_s + self.source_broker_cpu_s + self.target_broker_cpu_s
        return max(0.0, self.machine_cpu_s - known)

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def cpu_s_per_million(self) -> float:
        return self.cpu_s * MILLION / self.records if self.records else 0.0

    @classmethod
    def between(cls, first: Sample, last: Sample) -> "Window":
        return cls(
            records=last.records - first.records,
            seconds=last.at_s - first.at_s,
            cpu_s=last.cpu_s - first.cpu_s,
            source_broker_cpu_s=last.source_broker_cpu_s - first.source_broker_cpu_s,
            target_broker_cpu_s=last.target_broker_cpu_s - first.target_broker_cpu_s,
            machine_cpu_s=last.machine_cpu_s - first.machine_cpu_s,
        )


def without_markers(samples: Sequence[Sample], share: float) -> list[Sample]:
    """Samples of end offsets as records, when only this share of all offsets holds records."""
    return [replace(sample, records=round(sample.records * share)) for sample in samples]


def first_with(samples: Sequence[Sample], records: int) -> Sample:
    """The first sample that saw at least `records` on the target."""
    return next(sample for sample in samples if sample.records >= records)


def copying(samples: Sequence[Sample]) -> Window:
    """From the first sample that saw a record to the first that saw the last one."""
    return Window.between(first_with(samples, 1), first_with(samples, samples[-1].records))


def second_half(samples: Sequence[Sample]) -> Window:
    """The second half of the records: what a JVM does once it has compiled its hot code."""
    last = samples[-1].records
    return Window.between(first_with(samples, last - last // 2), first_with(samples, last))


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, lowest and highest of a few runs."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        """None when no run gave a value."""
        return cls(median(values), min(values), max(values)) if values else None


def middle_half(values: Sequence[float]) -> Spread | None:
    """Median and quartiles; None when there are no values."""
    ordered = sorted(values)
    quartiles = (percentile(ordered, 25), percentile(ordered, 75)) if ordered else None
    return Spread(median(ordered), *quartiles) if quartiles else None


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile of values in ascending order; at least one is needed."""
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of latencies, in milliseconds."""

    records: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float

    @classmethod
    def of(cls, latencies_ms: Iterable[float]) -> "Percentiles":
        ordered = sorted(latencies_ms)
        p50, p99, p999 = (percentile(ordered, percent) for percent in (50, 99, 99.9))
        return cls(len(ordered), p50, p99, p999, ordered[-1])
