"""Derives the plan of a benchmark from its options. Pure."""

from argparse import Namespace
from dataclasses import dataclass, replace

from bench.results import Pairing, Victim
from bench.sides import Side
from bench.workloads import (
    BY_NAME,
    COPIED,
    DRILL,
    EXACTLY_ONCE,
    FAR,
    GROUPS,
    GROWTH,
    HOT,
    IDLE,
    LATENCY,
    MEMORY,
    NAMES,
    REST,
    THROUGHPUT,
    TOPICS,
    TRANSLATION,
    Workload,
)

_QUICK_SCALE = 0.2
_QUICK_SIDES = (Side.CEILING, Side.MM2, Side.OURS, Side.RELAY)
_FAR_MEGABYTES = 250


@dataclass(frozen=True, slots=True)
class Grown:
    """So many quiet partitions, looked at for so long."""

    partitions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Hot:
    """The quiet partitions beside a hot one, and what each burst of it brings; less for MM2."""

    neighbours: int
    records: int
    mm2_records: int


@dataclass(frozen=True, slots=True)
class ManyGroups:
    """So many consumer groups, each with offsets in the same partitions."""

    groups: int


@dataclass(frozen=True, slots=True)
class ManyTopics:
    """So many topics, of one partition each, looked at for so long."""

    topics: int
    seconds: float
    mm2_topics: int
    """Java's share. It asks for all in one request, and KRaft's controller makes 10,000 records for one."""

    def of(self, side: Side) -> "ManyTopics":
        return replace(self, topics=self.mm2_topics) if side.is_java else self


@dataclass(frozen=True, slots=True)
class Rest:
    """So many connectors on a Connect worker: polled by clients for so long, and recreated in rounds."""

    connectors: int
    clients: int
    seconds: float
    rounds: int
    mm2_connectors: int
    """Connectors of Java's worker in one round: each change of one takes a rebalance, which is seconds."""

    def of(self, side: Side) -> "Rest":
        """Return what that side's worker is asked for."""
        return replace(self, connectors=self.mm2_connectors, rounds=1) if side.is_java else self


_GROWN = Grown(partitions=5000, seconds=30.0)
_GROWN_A_LITTLE = Grown(partitions=1000, seconds=10.0)
_HOT = Hot(neighbours=2000, records=1_000_000, mm2_records=200_000)
_HOT_A_LITTLE = Hot(neighbours=400, records=300_000, mm2_records=60_000)
_MANY = ManyGroups(groups=5000)
_SOME = ManyGroups(groups=500)
_REST = Rest(connectors=200, clients=200, seconds=20.0, rounds=3, mm2_connectors=20)
_REST_A_LITTLE = Rest(connectors=50, clients=200, seconds=5.0, rounds=2, mm2_connectors=10)
_TOPICS = ManyTopics(topics=5000, seconds=60.0, mm2_topics=4000)
_TOPICS_A_LITTLE = ManyTopics(topics=500, seconds=20.0, mm2_topics=500)
_AS_THEY_ARE = 3
"""Every so manyth pair is followed by one of the settings as they are."""

PAIRED = tuple(
    replace(BY_NAME[name], records=records, mm2_records=records)
    for name, records in (("1kb", 500_000), ("1kb-lz4", 800_000))
)
"""Workloads for both modes of delivery: runs of one or two seconds, so that there can be many pairs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`runs` of each workload on each side, alternating, then the measurements of ours alone."""

    runs: int
    sides: tuple[Side, ...]
    workloads: tuple[Workload, ...]
    latency_warm_up_s: float
    latency_s: float
    latency_warm_ups: int
    latency_runs: int
    memory_workload: Workload | None
    pair_workloads: tuple[Workload, ...]
    pairs: int
    idle_partitions: int
    idle_s: float
    far_megabytes: int
    grown: Grown | None
    hot: Hot | None
    drill_kills: int
    translated: bool
    many_groups: ManyGroups | None
    rest: Rest | None
    many_topics: ManyTopics | None
    batch_bytes: int
    tasks_max: int

    @property
    def latency_sides(self) -> tuple[Side, ...]:
        """MM2_TUNED waits 100 ms for more records on purpose: its latency would say nothing new."""
        return tuple(side for side in self.sides if side in {Side.OURS, Side.MM2, Side.RELAY})

    @property
    def hot_sides(self) -> tuple[Side, ...]:
        return tuple(side for side in (Side.OURS, Side.MM2) if self.hot and side in self.sides)

    @property
    def mirror_sides(self) -> tuple[Side, ...]:
        """The sides that translate offsets and have connectors, once each."""
        return tuple(side for side in (Side.OURS, Side.MM2) if side in self.sides)

    @property
    def pairings(self) -> tuple[tuple[int, Pairing], ...]:
        """All pairings in their order, numbered."""
        every = ((number, pairing) for number in range(1, self.pairs + 1) for pairing in Pairing)
        rare = Pairing.AS_THEY_ARE
        return tuple((n, pairing) for n, pairing in every if pairing is not rare or n % _AS_THEY_ARE == 0)

    @property
    def drills(self) -> tuple[tuple[Side, Victim], ...]:
        every = ((Side.OURS, Victim.WORKER), (Side.OURS, Victim.EVERYTHING), (Side.MM2, Victim.EVERYTHING))
        return tuple(drill for drill in every if self.drill_kills and drill[0] in self.sides)

    @property
    def is_complete(self) -> bool:
        """Whether this may replace the published numbers."""
        alone = (self.memory_workload, self.pair_workloads, self.idle_partitions, self.far_megabytes)
        around = (self.translated, self.many_groups, self.rest, self.many_topics)
        everything = all((*alone, self.grown, self.hot, self.drill_kills, *around))
        everything = everything and self.workloads == COPIED
        return everything and min(self.runs, self.latency_runs) >= 3 and self.sides == tuple(Side)

    def order(self, run: int, workload: Workload) -> tuple[Side, ...]:
        """The workload's sides in one round."""
        return _rotated(tuple(side for side in self.sides if side in workload.sides), run)

    def latency_order(self, run: int) -> tuple[Side, ...]:
        return _rotated(self.latency_sides, run)


def _rotated(sides: tuple[Side, ...], run: int) -> tuple[Side, ...]:
    """None always comes first: brokers get faster for some minutes after their start."""
    first = (run - 1) % max(len(sides), 1)
    return sides[first:] + sides[:first]


def plan_from(options: Namespace) -> Plan:
    """The options of `bench.__main__`."""
    chosen = options.only or NAMES
    sides = options.sides or (_QUICK_SIDES if options.quick else tuple(Side))
    ours = Side.OURS in sides
    runs = options.runs or (1 if options.quick else 3)
    return Plan(
        runs=runs,
        sides=tuple(side for side in Side if side in sides),
        workloads=tuple(_sized(workload, options) for workload in COPIED if workload.name in chosen),
        latency_warm_up_s=5.0 if options.quick else 10.0,
        latency_s=5.0 if options.quick else 30.0,
        latency_warm_ups=1 if options.quick else 3,
        latency_runs=runs if LATENCY in chosen else 0,
        memory_workload=_sized(THROUGHPUT[0], options) if ours and MEMORY in chosen else None,
        pair_workloads=PAIRED if ours and EXACTLY_ONCE in chosen else (),
        pairs=3 if options.quick else 15,
        idle_partitions=1000 if ours and IDLE in chosen else 0,
        idle_s=10.0 if options.quick else 30.0,
        far_megabytes=(_FAR_MEGABYTES // (5 if options.quick else 1)) if ours and FAR in chosen else 0,
        grown=(_GROWN_A_LITTLE if options.quick else _GROWN) if ours and GROWTH in chosen else None,
        hot=(_HOT_A_LITTLE if options.quick else _HOT) if ours and HOT in chosen else None,
        drill_kills=(1 if options.quick else 3) if DRILL in chosen else 0,
        translated=TRANSLATION in chosen,
        many_groups=(_SOME if options.quick else _MANY) if GROUPS in chosen else None,
        rest=(_REST_A_LITTLE if options.quick else _REST) if REST in chosen else None,
        many_topics=(_TOPICS_A_LITTLE if options.quick else _TOPICS) if TOPICS in chosen else None,
        batch_bytes=options.batch_bytes,
        tasks_max=options.tasks_max,
    )


def _sized(workload: Workload, options: Namespace) -> Workload:
    if options.records:
        return workload.with_records(options.records)
    return workload.scaled(_QUICK_SCALE) if options.quick else workload
