"""What to run: options in, a plan out. Pure."""

from argparse import Namespace
from dataclasses import dataclass

from bench.results import Victim
from bench.sides import Side
from bench.workloads import DRILL, IDLE, LATENCY, MEMORY, NAMES, THROUGHPUT, Workload

_QUICK_SCALE = 0.2
_QUICK_SIDES = (Side.CEILING, Side.MM2, Side.OURS)


@dataclass(frozen=True, slots=True)
class Plan:
    """`runs` of each workload on each side, alternating, then the measurements of ours alone."""

    runs: int
    sides: tuple[Side, ...]
    workloads: tuple[Workload, ...]
    latency_warm_up_s: float
    latency_s: float
    latency_runs: int
    memory_workload: Workload | None
    idle_partitions: int
    idle_s: float
    drill_kills: int
    batch_bytes: int
    tasks_max: int

    @property
    def latency_sides(self) -> tuple[Side, ...]:
        """MM2_TUNED waits 100 ms for more records on purpose: its latency would say nothing new."""
        return tuple(side for side in self.sides if side in {Side.OURS, Side.MM2})

    @property
    def drills(self) -> tuple[tuple[Side, Victim], ...]:
        every = ((Side.OURS, Victim.WORKER), (Side.OURS, Victim.EVERYTHING), (Side.MM2, Victim.EVERYTHING))
        return tuple(drill for drill in every if self.drill_kills and drill[0] in self.sides)

    @property
    def is_complete(self) -> bool:
        """Whether this may replace the published numbers."""
        alone = self.memory_workload and self.idle_partitions and self.drill_kills
        everything = alone and self.workloads == THROUGHPUT
        return bool(everything and min(self.runs, self.latency_runs) >= 3 and self.sides == tuple(Side))

    def order(self, run: int) -> tuple[Side, ...]:
        """The sides of one round, rotated so that none always comes first."""
        first = (run - 1) % len(self.sides)
        return self.sides[first:] + self.sides[:first]


def plan_from(options: Namespace) -> Plan:
    """The options of `bench.__main__`."""
    chosen = options.only or NAMES
    sides = options.sides or (_QUICK_SIDES if options.quick else tuple(Side))
    ours = Side.OURS in sides
    runs = options.runs or (1 if options.quick else 3)
    return Plan(
        runs=runs,
        sides=tuple(side for side in Side if side in sides),
        workloads=tuple(_sized(workload, options) for workload in THROUGHPUT if workload.name in chosen),
        latency_warm_up_s=5.0 if options.quick else 10.0,
        latency_s=5.0 if options.quick else 15.0,
        latency_runs=runs if LATENCY in chosen else 0,
        memory_workload=_sized(THROUGHPUT[0], options) if ours and MEMORY in chosen else None,
        idle_partitions=1000 if ours and IDLE in chosen else 0,
        idle_s=10.0 if options.quick else 30.0,
        drill_kills=(1 if options.quick else 3) if DRILL in chosen else 0,
        batch_bytes=options.batch_bytes,
        tasks_max=options.tasks_max,
    )


def _sized(workload: Workload, options: Namespace) -> Workload:
    if options.records:
        return workload.with_records(options.records)
    return workload.scaled(_QUICK_SCALE) if options.quick else workload
