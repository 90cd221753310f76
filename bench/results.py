"""What was measured, as values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from bench.dataset import Dataset
from bench.measures import Percentiles, Spread, Window
from bench.sides import Side


@dataclass(frozen=True, slots=True)
class ThroughputRun:
    """One side copied one workload once. CPU counts every process; memory is the sum of PSS."""

    workload: str
    side: Side
    run: int
    start_s: float
    """From the start of the first process to the first record on the target."""
    start_cpu_s: float
    copying: Window
    second_half: Window
    stop_s: float
    total_cpu_s: float
    """Of the whole life: start-up, copying and shutdown."""
    peak_pss_mb: float
    peak_worker_pss_mb: float
    """Of the largest Spark Python worker; 0 for sides that have none."""
    killed: bool


@dataclass(frozen=True, slots=True)
class LatencyRun:
    """From before the producer's `produce` to after the consumer's `poll`. `side` None: no mirror between."""

    side: Side | None
    run: int
    latency: Percentiles


@dataclass(frozen=True, slots=True)
class IdleRun:
    """CPU of sparkmirror with nothing to copy, in percent of one core."""

    partitions: int
    seconds: float
    all_processes_percent: float
    worker_percent: float
    peak_pss_mb: float


class Victim(Enum):
    """What a drill kills. Java MM2 is one process, so only everything can be killed of it."""

    WORKER = "a worker"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class DrillRun:
    """What kills under load cost. A stall is how long some partition got nothing."""

    side: Side
    victim: Victim
    kills: int
    records: int
    duplicates: int
    losses: int
    longest_stall_s: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that gave no numbers, and why. `side` None: no mirror between."""

    workload: str
    side: Side | None
    run: int
    reason: str = ""

    @property
    def title(self) -> str:
        return f"{self.workload} run {self.run}, {self.side.title if self.side else 'no mirror'}"

    def because(self, reason: str) -> "Failure":
        return replace(self, reason=reason)


@dataclass(slots=True)
class Results:
    """Everything of one benchmark; filled while it runs."""

    datasets: list[Dataset] = field(default_factory=list)
    throughput: list[ThroughputRun] = field(default_factory=list)
    memory: list[ThroughputRun] = field(default_factory=list)
    latency: list[LatencyRun] = field(default_factory=list)
    idle: list[IdleRun] = field(default_factory=list)
    drills: list[DrillRun] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def was_tried(self, workload: str) -> bool:
        """Whether any side ran it, with or without success."""
        ran = {run.workload for run in self.throughput}
        return workload in ran | {failure.workload for failure in self.failures}

    def spread(self, workload: str, side: Side, value: Callable[[ThroughputRun], float]) -> Spread | None:
        runs = (run for run in self.throughput if (run.workload, run.side) == (workload, side))
        return Spread.of([value(run) for run in runs])

    def latency_spread(self, side: Side | None, value: Callable[[Percentiles], float]) -> Spread | None:
        return Spread.of([value(run.latency) for run in self.latency if run.side is side])


def highest(values: Iterable[float]) -> float | None:
    return max(values, default=None)
