"""Defines the values that benchmarks measure."""

from collections.abc import Callable, Iterable, Mapping
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
    """CPU seconds of start-up, copying and shutdown."""
    peak_pss_mb: float
    peak_worker_pss_mb: float
    """The peak of the largest Spark Python worker; 0 for sides that have none."""
    killed: bool


@dataclass(frozen=True, slots=True)
class LatencyRun:
    """From before the producer's `produce` to after the consumer's `poll`. `side` None: no mirror between."""

    side: Side | None
    run: int
    latency: Percentiles


@dataclass(frozen=True, slots=True)
class IdleRun:
    """CPU of sparkmirror with next to nothing to copy, in percent of one core.

    `start_s` is the time from its start until every partition had its first record on the target.
    """

    partitions: int
    seconds: float
    all_processes_percent: float
    worker_percent: float
    peak_pss_mb: float
    start_s: float


@dataclass(frozen=True, slots=True)
class Burst:
    """The backlog of a hot partition, copied at once. CPU counts every process of the side."""

    records_per_s: float
    cpu_s_per_million: float


@dataclass(frozen=True, slots=True)
class HotRun:
    """One busy partition beside quiet ones of the same task; as many bursts as there are repetitions."""

    side: Side
    neighbours: int
    bursts: tuple[Burst, ...]
    peak_pss_mb: float

    @property
    def rate(self) -> Spread | None:
        return Spread.of([burst.records_per_s for burst in self.bursts])

    @property
    def cpu(self) -> Spread | None:
        return Spread.of([burst.cpu_s_per_million for burst in self.bursts])


class Pairing(Enum):
    """Settings that the two runs of a pair have in common."""

    ONE_REQUEST = "one request under way in both"
    AS_THEY_ARE = "up to five requests under way by default"


@dataclass(frozen=True, slots=True)
class PairRun:
    """One copy task with the defaults, and at once before or after it the same without idempotence."""

    workload: str
    pairing: Pairing
    number: int
    default_records_per_s: float
    default_cpu_s_per_million: float
    at_least_once_records_per_s: float
    at_least_once_cpu_s_per_million: float

    @property
    def throughput_ratio(self) -> float:
        return self.default_records_per_s / self.at_least_once_records_per_s

    @property
    def cpu_ratio(self) -> float:
        return self.default_cpu_s_per_million / self.at_least_once_cpu_s_per_million


@dataclass(frozen=True, slots=True)
class FarRun:
    """The rate of one copy task over a long way, and the most that its requests under way could have carried.

    `fills_requests` tells whether the batches are large enough for `max.request.size` to be that bound.
    """

    name: str
    fills_requests: bool
    round_trip_s: float
    start_s: float
    bytes_per_s: float
    bound_bytes_per_s: float
    requests_under_way: int

    @property
    def share(self) -> float:
        return self.bytes_per_s / self.bound_bytes_per_s


class Victim(Enum):
    """A drill's victim. Java MM2 is one process, so only everything can be killed of it."""

    WORKER = "a worker"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class DrillRun:
    """The cost of kills under load. A stall is how long some partition got nothing."""

    side: Side
    victim: Victim
    kills: int
    records: int
    duplicates: int
    losses: int
    longest_stall_s: float


class Moment(Enum):
    """When groups fail over. All but the first while data flows."""

    QUIET = "all is copied"
    FLOWING = "data flows"
    ALONG = "data flows, groups read along"
    NAMED = "the same, by what the checkpoint names"
    RESTARTED = "after a restart"


@dataclass(frozen=True, slots=True)
class TranslationRun:
    """The places where groups continued in topics of one kind: records that each read again, that all missed.

    `inside` is the share of their offsets that lie in runs; of those, the most that one read again.
    """

    side: Side
    moment: Moment
    kind: str
    again: tuple[int, ...]
    missed: int
    inside: float
    again_inside_max: int

    @property
    def mean(self) -> float:
        return sum(self.again) / len(self.again)


@dataclass(frozen=True, slots=True)
class ManyGroupsRun:
    """Checkpoints of many groups, with CPU of all processes in an interval in which all of them moved.

    `written_at_first` is how many there were a minute after the first one. A side that had not written all
    then has only that minute's CPU: nothing is known of an interval in which none moved, nor how long after
    its first checkpoint the last one was there when all had moved (`took_s`).
    """

    side: Side
    groups: int
    partitions: int
    interval_s: float
    written_at_first: int
    moved_cpu_s: float
    peak_pss_mb: float
    quiet_cpu_s: float | None = None
    took_s: float | None = None


@dataclass(frozen=True, slots=True)
class RestLoadRun:
    """Clients that poll a Connect worker's statuses while connectors change. `side` None: the floor.

    `codes` are those of the answers, `changes` those of what was asked to change; `lost` answers never came.
    """

    side: Side | None
    clients: int
    connectors: int
    seconds: float
    latency: Percentiles
    codes: Mapping[str, int]
    changes: Mapping[str, int]
    lost: int
    cpu_s: float
    client_cpu_s: float

    @property
    def errors(self) -> int:
        """Answers 5xx to any request, and those that never came."""
        counts = [*self.codes.items(), *self.changes.items()]
        return self.lost + sum(count for code, count in counts if code.startswith("5"))


@dataclass(frozen=True, slots=True)
class Holdings:
    """Resources that a worker's own process holds."""

    rss_mb: float
    threads: int
    descriptors: int
    sockets: int


@dataclass(frozen=True, slots=True)
class RestRoundsRun:
    """Connectors created, reconfigured and deleted, repeatedly under new names.

    `held` is what the worker held after each round, when all were gone; `held_with_all` in the last one when
    all were there.
    """

    side: Side
    connectors: int
    seconds: tuple[float, ...]
    cpu_s: tuple[float, ...]
    held: tuple[Holdings, ...]
    held_with_all: Holdings
    codes: Mapping[str, int]

    def growth(self, value: Callable[[Holdings], float]) -> float:
        """From the end of the first round to the end of the last."""
        return value(self.held[-1]) - value(self.held[0])

    @property
    def deleted(self) -> int:
        """Connectors that came and went in that time."""
        return self.connectors * (len(self.held) - 1)


@dataclass(frozen=True, slots=True)
class TopicsRun:
    """Many topics: until the target took records for them, with their configs, and a minute of looking again.

    CPU is that of all processes of the side, and of both brokers. Requests are those about topics, by Kafka's
    names, to both clusters. A side that has not `made` all of them has only what it took in vain.
    """

    side: Side
    topics: int
    made: int
    first_cpu_s: float
    first_brokers_cpu_s: float
    first_requests: Mapping[str, int]
    peak_pss_mb: float
    first_sync_s: float | None = None
    """From the start of the first process."""
    steady_cpu_s: float | None = None
    steady_brokers_cpu_s: float | None = None
    steady_requests: Mapping[str, float] | None = None


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
    pairs: list[PairRun] = field(default_factory=list)
    far: list[FarRun] = field(default_factory=list)
    grown: list[IdleRun] = field(default_factory=list)
    hot: list[HotRun] = field(default_factory=list)
    drills: list[DrillRun] = field(default_factory=list)
    translations: list[TranslationRun] = field(default_factory=list)
    many_groups: list[ManyGroupsRun] = field(default_factory=list)
    rest_loads: list[RestLoadRun] = field(default_factory=list)
    rest_rounds: list[RestRoundsRun] = field(default_factory=list)
    topics: list[TopicsRun] = field(default_factory=list)
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

    def pairs_of(self, workload: str, pairing: Pairing) -> list[PairRun]:
        return [run for run in self.pairs if (run.workload, run.pairing) == (workload, pairing)]

    def translated(self, side: Side, moment: Moment) -> list[TranslationRun]:
        """One for each kind of topic."""
        return [run for run in self.translations if (run.side, run.moment) == (side, moment)]

    def of_many_groups(self, side: Side) -> ManyGroupsRun | None:
        return next((run for run in self.many_groups if run.side is side), None)

    def of_topics(self, side: Side) -> TopicsRun | None:
        return next((run for run in self.topics if run.side is side), None)

    def hot_alone(self, side: Side) -> HotRun | None:
        return next((run for run in self.hot if run.side is side and not run.neighbours), None)


def highest(values: Iterable[float]) -> float | None:
    return max(values, default=None)
