"""Compares results with their targets. Pure. A missing measurement is a missing value, never a guess."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bench.measures import Percentiles, Spread
from bench.results import (
    DrillRun,
    HotRun,
    Moment,
    Pairing,
    Results,
    ThroughputRun,
    TopicsRun,
    Victim,
    highest,
)
from bench.sides import Side
from bench.workloads import (
    BY_NAME,
    FAR,
    GROUPS,
    HOT,
    IDLE,
    LATENCY,
    MEMORY,
    PLAINTEXT,
    REST,
    SLOW_ROAD,
    THROUGHPUT,
    TLS,
    TOPICS,
    TRANSACTIONAL,
    TRANSLATION,
    Workload,
)

MB_PER_COPY_TASK_MAX = 200.0
IDLE_PERCENT_MAX = 3.0
OVERHEAD_PERCENT_MAX = 3.0
FAR_SHARE_MIN = 0.8
HOT_SHARE_MIN = 0.9
LATENCY_P99 = "latency p99 against MM2"
REST_P99_MS_MAX = 50.0
THREADS_LEFT_MAX = 5.0
SOCKETS_LEFT_MAX = 5.0
KB_PER_DELETED_MAX = 10.0
TLS_SHARE_MIN = 0.6
TLS_CPU_TIMES_MAX = 2.2
TLS_AGAINST_MM2_MIN = 5.0
TLS_CPU_AGAINST_MM2_MAX = 0.125
STALL_S_MAX = {Victim.WORKER: 2.0, Victim.EVERYTHING: 15.0}


class Bare(NamedTuple):
    """The rates of a bare reader and writer in sparkmirror's place, in the same runs."""

    name: str
    reached: float


@dataclass(frozen=True, slots=True)
class Goal:
    """`reached` against `target`, of the same unit; None when it was not measured. `bare` likewise."""

    what: str
    relation: Literal["≥", "≤"]
    target: float
    reached: float | None
    unit: str = "times"
    bare: Bare | None = None

    @property
    def is_met(self) -> bool:
        if self.reached is None:
            return False
        return self.reached >= self.target if self.relation == "≥" else self.reached <= self.target

    @property
    def missed_by(self) -> str | None:
        """Distance from the target, in percent of it if it isn't 0; None when met or not measured."""
        if self.reached is None or self.is_met:
            return None
        distance = abs(self.reached - self.target)
        return f"{100 * distance / self.target:.0f} %" if self.target else f"{distance:,.0f} {self.unit}"


def goals(results: Results) -> list[Goal]:
    """The goals of everything that was tried, in the order of the table."""
    tried = [workload for workload in THROUGHPUT if results.was_tried(workload.name)]
    rows = [row for workload in tried for row in _throughput_goals(results, workload)]
    others = [workload for workload in _OPENED if results.was_tried(workload.name)]
    rows += [_against_mm2(results, workload) for workload in others]
    rows += _tls_goals(results) if results.was_tried(TLS.name) else ()
    rows += _pair_goals(results)
    rows += _latency_goals(results) if results.latency or results.was_tried(LATENCY) else ()
    rows += _memory_goals(results) if results.memory or results.was_tried(MEMORY) else ()
    rows += _idle_goals(results) if results.idle or results.was_tried(IDLE) else ()
    rows += _far_goals(results) if results.far or results.was_tried(FAR) else ()
    rows += _hot_goals(results) if results.hot or results.was_tried(HOT) else ()
    rows += _translation_goals(results) if results.translations or results.was_tried(TRANSLATION) else ()
    rows += _many_groups_goals(results) if results.many_groups or results.was_tried(GROUPS) else ()
    rested = results.rest_loads or results.rest_rounds
    rows += _rest_goals(results) if rested or results.was_tried(REST) else ()
    rows += _topics_goals(results) if results.topics or results.was_tried(TOPICS) else ()
    return [*rows, *(goal for run in results.drills if run.side is Side.OURS for goal in _drill_goals(run))]


_OPENED = (*(workload for workload in SLOW_ROAD if workload.name != "zstd"), TRANSACTIONAL)
"""zstd has no goal: the codec's library does that work, on both sides."""


def _throughput_goals(results: Results, workload: Workload) -> Iterator[Goal]:
    yield _against_mm2(results, workload)
    ceiling, reads = (
        ratio(results, workload, side, Side.CEILING, rate) for side in (Side.OURS, Side.CEILING_READS)
    )
    bare = None if reads is None else Bare("a ceiling that reads", reads)
    yield Goal(f"{workload.title}: throughput against the ceiling", "≥", 0.85, ceiling, bare=bare)
    mm2 = ratio(results, workload, Side.OURS, Side.MM2, cpu)
    yield Goal(f"{workload.title}: CPU per million records against MM2", "≤", 0.2, mm2)


def _against_mm2(results: Results, workload: Workload) -> Goal:
    times = ratio(results, workload, Side.OURS, Side.MM2, rate)
    return Goal(f"{workload.title}: throughput against MM2", "≥", 3.0, times)


def _tls_goals(results: Results) -> Iterator[Goal]:
    def against_plaintext(value: Callable[[ThroughputRun], float]) -> float | None:
        tls, plain = (results.spread(name, Side.OURS, value) for name in (TLS.name, PLAINTEXT.name))
        return tls.median / plain.median if tls and plain and plain.median else None

    def against_mm2(value: Callable[[ThroughputRun], float]) -> float | None:
        return ratio(results, TLS, Side.OURS, Side.MM2, value)

    title, cpu_of = TLS.title, f"{TLS.title}: CPU per million records"
    yield Goal(f"{title}: throughput against plaintext", "≥", TLS_SHARE_MIN, against_plaintext(rate))
    yield Goal(f"{cpu_of} against plaintext", "≤", TLS_CPU_TIMES_MAX, against_plaintext(cpu))
    yield Goal(f"{title}: throughput against MM2", "≥", TLS_AGAINST_MM2_MIN, against_mm2(rate))
    yield Goal(f"{cpu_of} against MM2", "≤", TLS_CPU_AGAINST_MM2_MAX, against_mm2(cpu))


def ratio(
    results: Results, workload: Workload, side: Side, other: Side, value: Callable[[ThroughputRun], float]
) -> float | None:
    """Divide the medians."""
    ours = results.spread(workload.name, side, value)
    theirs = results.spread(workload.name, other, value)
    return ours.median / theirs.median if ours and theirs and theirs.median else None


def _pair_goals(results: Results) -> Iterator[Goal]:
    """Pairs with one request under way each: with more of them the default is faster, whatever it costs."""
    for name in dict.fromkeys(run.workload for run in results.pairs):
        pairs = results.pairs_of(name, Pairing.ONE_REQUEST)
        ratio = Spread.of([run.throughput_ratio for run in pairs])
        cost = 100 * (1 - ratio.median) if ratio else None
        what = f"{BY_NAME[name].title}: what exactly-once by default takes from the throughput"
        yield Goal(what, "≤", OVERHEAD_PERCENT_MAX, cost, "%")


def _latency_goals(results: Results) -> Iterator[Goal]:
    def goal(what: str, target: float, value: Callable[[Percentiles], float]) -> Goal:
        ours, relay = (latency_ratio(results, side, Side.MM2, value) for side in (Side.OURS, Side.RELAY))
        return Goal(what, "≤", target, ours, bare=None if relay is None else Bare("a relay", relay))

    yield goal("latency p50 against MM2", round(1 / 3, 3), lambda run: run.p50_ms)
    yield goal(LATENCY_P99, 0.5, lambda run: run.p99_ms)


def latency_ratio(
    results: Results, side: Side, other: Side, value: Callable[[Percentiles], float]
) -> float | None:
    """Divide the medians."""
    ours, theirs = results.latency_spread(side, value), results.latency_spread(other, value)
    return ours.median / theirs.median if ours and theirs and theirs.median else None


def _memory_goals(results: Results) -> Iterator[Goal]:
    memory = highest(run.peak_worker_pss_mb for run in results.memory if run.peak_worker_pss_mb)
    yield Goal("memory of one copy task, 8 partitions", "≤", MB_PER_COPY_TASK_MAX, memory, "MB")


def _idle_goals(results: Results) -> Iterator[Goal]:
    everything = highest(run.all_processes_percent for run in results.idle)
    worker = highest(run.worker_percent for run in results.idle)
    for scope, percent in (("all processes", everything), ("the task's Python worker", worker)):
        yield Goal(f"1,000 idle partitions, {scope}", "≤", IDLE_PERCENT_MAX, percent, "% of a core")


def _far_goals(results: Results) -> Iterator[Goal]:
    share = min((run.share for run in results.far if run.fills_requests), default=None)
    what = "far target, large batches: bytes/s against 5 requests per round trip"
    yield Goal(what, "≥", FAR_SHARE_MIN, share)


def _hot_goals(results: Results) -> Iterator[Goal]:
    for run in results.hot:
        if run.neighbours and run.side is Side.OURS:
            share = hot_share(results, run)
            what = f"one hot partition beside {run.neighbours:,} quiet ones: throughput against it alone"
            yield Goal(what, "≥", HOT_SHARE_MIN, share)


def hot_share(results: Results, run: HotRun) -> float | None:
    """The share of the throughput that the same partition has alone."""
    alone = results.hot_alone(run.side)
    whole = alone.rate if alone else None
    return run.rate.median / whole.median if run.rate and whole else None


def _translation_goals(results: Results) -> Iterator[Goal]:
    for moment in _TOLD_BY_RUNS:
        again = highest(run.again_inside_max for run in results.translated(Side.OURS, moment))
        what = f"failing over, {moment.value}: read again, where a run tells the place"
        yield Goal(what, "≤", 0.0, again, "records")
    missed = [run.missed for run in results.translations if run.side is Side.OURS]
    yield Goal("failing over: missed", "≤", 0.0, float(sum(missed)) if missed else None, "records")
    yield Goal("failing over: read again against MM2, at worst", "≤", 1.0, _worst_again(results))


_TOLD_BY_RUNS = (Moment.QUIET, Moment.FLOWING, Moment.NAMED, Moment.RESTARTED)
"""A group that reads along reads again from its checkpoint, on every side."""


def _worst_again(results: Results) -> float | None:
    """Return the highest of the means, over all moments and kinds of topics."""
    theirs = {(run.moment, run.kind): run.mean for run in results.translations if run.side is Side.MM2}
    pairs = [
        (run.mean, theirs[run.moment, run.kind])
        for run in results.translations
        if run.side is Side.OURS and (run.moment, run.kind) in theirs
    ]
    return highest(ours / mm2 if mm2 else (math.inf if ours else 0.0) for ours, mm2 in pairs)


def _many_groups_goals(results: Results) -> Iterator[Goal]:
    ours, mm2 = results.of_many_groups(Side.OURS), results.of_many_groups(Side.MM2)
    ratio = ours.moved_cpu_s / mm2.moved_cpu_s if ours and mm2 and mm2.moved_cpu_s else None
    yield Goal("checkpoints of many groups: CPU against MM2", "≤", round(1 / 3, 3), ratio)
    took, interval = (ours.took_s, ours.interval_s) if ours else (None, 0.0)
    yield Goal("checkpoints of many groups: from the first to the last", "≤", interval, took, "s")


def _rest_goals(results: Results) -> Iterator[Goal]:
    """Some threads and sockets come and go whatever connectors do: pools, and the brokers' idle connections.

    A leak would be one for each connector or for each round; a page of memory is 4 KB.
    """
    load = next((run for run in results.rest_loads if run.side is Side.OURS), None)
    rounds = next((run for run in results.rest_rounds if run.side is Side.OURS), None)
    p99, errors = (load.latency.p99_ms, float(load.errors)) if load else (None, None)
    polled = f"REST, {load.clients} clients while connectors change" if load else "REST under load"
    yield Goal(f"{polled}: p99", "≤", REST_P99_MS_MAX, p99, "ms")
    yield Goal(f"{polled}: answers 5xx or none", "≤", 0.0, errors, "answers")
    gone = f"{rounds.deleted:,} connectors made and deleted" if rounds else "connectors made and deleted"
    threads, sockets, memory = (
        (
            rounds.growth(lambda held: held.threads),
            rounds.growth(lambda held: held.sockets),
            1024 * rounds.growth(lambda held: held.rss_mb) / max(rounds.deleted, 1),
        )
        if rounds
        else (None, None, None)
    )
    yield Goal(f"{gone}: threads left", "≤", THREADS_LEFT_MAX, threads, "threads")
    yield Goal(f"{gone}: sockets left", "≤", SOCKETS_LEFT_MAX, sockets, "sockets")
    yield Goal(f"{gone}: memory of each", "≤", KB_PER_DELETED_MAX, memory, "KB")


def _topics_goals(results: Results) -> Iterator[Goal]:
    """Goals per topic, since Java may have had fewer topics."""
    ours, mm2 = results.of_topics(Side.OURS), results.of_topics(Side.MM2)

    def ratio(value: Callable[[TopicsRun], float | None]) -> float | None:
        here, there = (None if run is None else value(run) for run in (ours, mm2))
        return here / ours.topics / (there / mm2.topics) if ours and mm2 and here and there else None

    what = f"{ours.topics:,} topics" if ours else "many topics"
    yield Goal(f"{what}: time until all are there against MM2", "≤", 1.0, ratio(lambda run: run.first_sync_s))
    yield Goal(f"{what}: CPU until then against MM2", "≤", 1.0, ratio(_cpu_until_all_were_there))
    steady = ratio(lambda run: run.steady_cpu_s)
    yield Goal(f"{what}: CPU of looking again against MM2", "≤", 0.5, steady)


def _cpu_until_all_were_there(run: TopicsRun) -> float | None:
    return None if run.first_sync_s is None else run.first_cpu_s


def _drill_goals(run: DrillRun) -> Iterator[Goal]:
    what = f"{run.victim.value} killed {run.kills} times under load"
    yield Goal(f"{what}: duplicates", "≤", 0.0, float(run.duplicates), "records")
    yield Goal(f"{what}: losses", "≤", 0.0, float(run.losses), "records")
    yield Goal(f"{what}: time without data", "≤", STALL_S_MAX[run.victim], run.longest_stall_s, "s")


def rate(run: ThroughputRun) -> float:
    return run.copying.records_per_s


def cpu(run: ThroughputRun) -> float:
    return run.copying.cpu_s_per_million
