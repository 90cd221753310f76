"""Tables of the results, and the page bench/RESULTS.md. Pure: results in, text out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from bench.goals import Goal, cpu, goals, hot_share, latency_ratio, rate
from bench.measures import Percentiles, Spread, middle_half
from bench.results import (
    DrillRun,
    FarRun,
    Holdings,
    HotRun,
    IdleRun,
    ManyGroupsRun,
    Moment,
    Pairing,
    PairRun,
    RestLoadRun,
    RestRoundsRun,
    Results,
    ThroughputRun,
    TopicsRun,
    TranslationRun,
)
from bench.sides import Side
from bench.workloads import BY_NAME, COPIED, Workload

_REASON_CHARS = 400


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a heading; drawn on the terminal or as Markdown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [
            self.columns,
            tuple("---:" if index else "---" for index in range(len(self.columns))),
            *self.rows,
        ]
        return "\n".join([f"### {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


@dataclass(frozen=True, slots=True)
class Quantity:
    """One row of a throughput table."""

    title: str
    of: Callable[[ThroughputRun], float]
    digits: int


def tables(results: Results) -> list[Table]:
    """All but the empty ones; the targets come first."""
    detail = (throughput_table(results, workload) for workload in COPIED)
    every = [
        goal_table(goals(results)),
        *detail,
        pair_table(results),
        latency_table(results),
        drill_table(results),
        far_table(results),
        hot_table(results),
        translation_table(results),
        many_groups_table(results),
        rest_load_table(results),
        rest_rounds_table(results),
        topics_table(results),
        resource_table(results),
        failure_table(results),
    ]
    return [table for table in every if table.rows]


def goal_table(rows: Sequence[Goal]) -> Table:
    return Table(
        "Targets and what was reached",
        ("", "target", "reached", "met"),
        tuple((goal.what, _target(goal), _reached(goal), _verdict(goal)) for goal in rows),
    )


def _target(goal: Goal) -> str:
    return f"{goal.relation} {goal.target:g} {goal.unit}"


def _reached(goal: Goal) -> str:
    bare = "" if goal.bare is None else f" ({goal.bare.name}: {goal.bare.reached:.3g})"
    return "not measured" if goal.reached is None else f"{goal.reached:.3g} {goal.unit}{bare}"


def _verdict(goal: Goal) -> str:
    return "yes" if goal.is_met else "-" if goal.missed_by is None else f"no, by {goal.missed_by}"


def throughput_table(results: Results, workload: Workload) -> Table:
    """A column for each side, a row for each quantity."""
    sides = [side for side in Side if results.spread(workload.name, side, rate)]
    rows = (_throughput_row(results, workload, sides, quantity) for quantity in _QUANTITIES)
    return Table(workload.title, ("", *(side.title for side in sides)), tuple(rows) if sides else ())


def _throughput_row(
    results: Results, workload: Workload, sides: Sequence[Side], quantity: Quantity
) -> tuple[str, ...]:
    spreads = (results.spread(workload.name, side, quantity.of) for side in sides)
    return (quantity.title, *(_spread(spread, quantity.digits) for spread in spreads))


def _cores(cpu_s: Callable[[ThroughputRun], float]) -> Callable[[ThroughputRun], float]:
    return lambda run: cpu_s(run) / run.copying.seconds if run.copying.seconds else 0.0


mirror_cores = _cores(lambda run: run.copying.cpu_s)
source_broker_cores = _cores(lambda run: run.copying.source_broker_cpu_s)
target_broker_cores = _cores(lambda run: run.copying.target_broker_cpu_s)
other_cores = _cores(lambda run: run.copying.other_cpu_s)

_QUANTITIES = (
    Quantity("records/s", rate, 0),
    Quantity("records/s, second half", lambda run: run.second_half.records_per_s, 0),
    Quantity("CPU s per million records", cpu, 2),
    Quantity("CPU s per million, second half", lambda run: run.second_half.cpu_s_per_million, 2),
    Quantity("cores used", mirror_cores, 2),
    Quantity("cores used by the source's broker", source_broker_cores, 2),
    Quantity("cores used by the target's broker", target_broker_cores, 2),
    Quantity("cores used by others, the probe included", other_cores, 2),
    Quantity("first record after, s", lambda run: run.start_s, 1),
    Quantity("CPU s until then", lambda run: run.start_cpu_s, 1),
    Quantity("CPU s, whole life", lambda run: run.total_cpu_s, 1),
    Quantity("peak memory, MB", lambda run: run.peak_pss_mb, 0),
    Quantity("stopped in, s", lambda run: run.stop_s, 1),
)


def _spread(spread: Spread | None, digits: int) -> str:
    """Median (lowest to highest); just the value when there is no difference to show."""
    if spread is None:
        return "-"
    low, middle, high = (f"{value:,.{digits}f}" for value in (spread.low, spread.median, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


_LATENCY_COLUMNS: dict[str, Callable[[Percentiles], float]] = {
    "p50, ms": lambda run: run.p50_ms,
    "p99, ms": lambda run: run.p99_ms,
    "p99.9, ms": lambda run: run.p999_ms,
    "highest, ms": lambda run: run.max_ms,
}


def latency_table(results: Results) -> Table:
    """The floor first: what producer, broker and consumer take without a mirror."""
    measured = {run.side for run in results.latency}
    sides = [side for side in (None, *Side) if side in measured]
    rows = [_latency_row(results, side) for side in sides]
    if measured >= {Side.OURS, Side.RELAY}:
        rows.append(_beside_relay_row(results))
    title = "Latency at 1,000 records/s over 8 partitions"
    return Table(title, ("", *_LATENCY_COLUMNS), tuple(rows))


def _beside_relay_row(results: Results) -> tuple[str, ...]:
    """Ratios of the medians above."""
    ratios = (latency_ratio(results, Side.OURS, Side.RELAY, value) for value in _LATENCY_COLUMNS.values())
    cells = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
    return ("sparkmirror's, times the relay's", *cells)


def _latency_row(results: Results, side: Side | None) -> tuple[str, ...]:
    title = side.title if side else "no mirror (consumer on the source)"
    if side is Side.RELAY:
        title = "relay (nothing but reading and writing)"
    return (title, *(_spread(results.latency_spread(side, value), 2) for value in _LATENCY_COLUMNS.values()))


def pair_table(results: Results) -> Table:
    """Medians over all pairs; of the ratios also the middle half, which single odd runs don't reach."""
    names = dict.fromkeys(run.workload for run in results.pairs)
    return Table(
        "Exactly-once by default beside at-least-once: one copy task, pairs of short runs",
        (
            "",
            "pairs",
            "records/s by default",
            "records/s at least once",
            "times (middle half)",
            "times as much CPU (middle half)",
        ),
        tuple(
            _pair_row(f"{BY_NAME[name].title}, {pairing.value}", runs)
            for name, pairing in product(names, Pairing)
            if (runs := results.pairs_of(name, pairing))
        ),
    )


def _pair_row(title: str, runs: Sequence[PairRun]) -> tuple[str, ...]:
    rates = (
        Spread.of([run.default_records_per_s for run in runs]),
        Spread.of([run.at_least_once_records_per_s for run in runs]),
    )
    ratios = ([run.throughput_ratio for run in runs], [run.cpu_ratio for run in runs])
    return (
        title,
        f"{len(runs)}",
        *(_spread(spread, 0) for spread in rates),
        *(_spread(middle_half(ratio), 3) for ratio in ratios),
    )


def far_table(results: Results) -> Table:
    return Table(
        "One copy task over a long way",
        ("", "round trip", "MB/s", "MB/s at most", "share", "requests under way", "first record after, s"),
        tuple(_far_row(run) for run in results.far),
    )


def _far_row(run: FarRun) -> tuple[str, ...]:
    return (
        run.name,
        f"{1000 * run.round_trip_s:.0f} ms",
        f"{run.bytes_per_s / 1e6:.1f}",
        f"{run.bound_bytes_per_s / 1e6:.1f}",
        f"{run.share:.2f}",
        f"{run.requests_under_way}",
        f"{run.start_s:.1f}",
    )


def hot_table(results: Results) -> Table:
    columns = ("", "records/s", "times that of it alone", "CPU s per million records", "peak memory, MB")
    rows = tuple(_hot_row(run, hot_share(results, run)) for run in results.hot)
    return Table("One hot partition beside quiet ones, one task", columns, rows)


def _hot_row(run: HotRun, share: float | None) -> tuple[str, ...]:
    beside = f"beside {run.neighbours:,} quiet ones" if run.neighbours else "alone"
    return (
        f"{run.side.title}, {beside}",
        _spread(run.rate, 0),
        f"{share:.2f}" if share and run.neighbours else "-",
        _spread(run.cpu, 2),
        f"{run.peak_pss_mb:.0f}",
    )


def drill_table(results: Results) -> Table:
    return Table(
        "SIGKILL under load",
        ("", "killed", "records", "duplicates", "losses", "longest time without data, s"),
        tuple(_drill_row(run) for run in results.drills),
    )


def _drill_row(run: DrillRun) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (run.records, run.duplicates, run.losses))
    return (run.side.title, f"{run.victim.value}, {run.kills} times", *counts, f"{run.longest_stall_s:.1f}")


def translation_table(results: Results) -> Table:
    """A column for each kind of topic."""
    kinds = dict.fromkeys(run.kind for run in results.translations)
    columns = ("", *(f"{kind}: mean (highest)" for kind in kinds), "missed", "in runs", "again there")
    measured = product(Moment, dict.fromkeys(run.side for run in results.translations))
    rows = (_translation_row(side, moment, results.translated(side, moment)) for moment, side in measured)
    return Table("Records that a group reads again after failing over", columns, tuple(filter(None, rows)))


def _translation_row(side: Side, moment: Moment, runs: Sequence[TranslationRun]) -> tuple[str, ...]:
    if not runs:
        return ()
    return (
        f"{moment.value}: {side.title}",
        *(f"{run.mean:,.1f} ({max(run.again):,})" for run in runs),
        f"{sum(run.missed for run in runs):,}",
        f"{100 * sum(run.inside for run in runs) / len(runs):.0f} %",
        f"{max(run.again_inside_max for run in runs):,}",
    )


def many_groups_table(results: Results) -> Table:
    run = next(iter(results.many_groups), None)
    title = f"Checkpoints of {run.groups:,} groups, {run.partitions} partitions each" if run else ""
    columns = (
        "",
        "written a minute after the first",
        "CPU s an interval",
        "when all move",
        "from first to last, s",
        "peak memory, MB",
    )
    return Table(title, columns, tuple(_many_groups_row(run) for run in results.many_groups))


def _many_groups_row(run: ManyGroupsRun) -> tuple[str, ...]:
    return (
        run.side.title,
        f"{run.written_at_first:,} of {run.groups * run.partitions:,}",
        "-" if run.quiet_cpu_s is None else f"{run.quiet_cpu_s:.2f}",
        f"{run.moved_cpu_s:.2f}",
        "-" if run.took_s is None else f"{run.took_s:.1f}",
        f"{run.peak_pss_mb:.0f}",
    )


def rest_load_table(results: Results) -> Table:
    """The floor first."""
    run = next(iter(results.rest_loads), None)
    title = f"REST: {run.clients} clients poll connectors' statuses" if run else ""
    columns = ("", *_LATENCY_COLUMNS, "answers", "changes", "5xx or none", "CPU s", "the clients' CPU s")
    return Table(title, columns, tuple(_rest_load_row(run) for run in results.rest_loads))


def _rest_load_row(run: RestLoadRun) -> tuple[str, ...]:
    return (
        f"{run.side.title}, {run.connectors} connectors"
        if run.side
        else f"a server that does nothing, {run.seconds:.0f} s",
        *(f"{value(run.latency):,.2f}" for value in _LATENCY_COLUMNS.values()),
        _codes(run.codes),
        _codes(run.changes),
        f"{run.errors:,}",
        f"{run.cpu_s:.1f}" if run.side else "-",
        f"{run.client_cpu_s:.1f}",
    )


def _codes(codes: Mapping[str, int]) -> str:
    """Counts of each status, as text."""
    return ", ".join(f"{count:,} of {code}" for code, count in sorted(codes.items())) or "-"


def rest_rounds_table(results: Results) -> Table:
    """A table of what the process that serves the API holds."""
    columns = (
        "",
        "s a round",
        "CPU s a round",
        "answers",
        "held with all",
        "after the first round",
        "after the last",
    )
    title = "Connectors created, reconfigured and deleted, round after round"
    return Table(title, columns, tuple(_rest_rounds_row(run) for run in results.rest_rounds))


def _rest_rounds_row(run: RestRoundsRun) -> tuple[str, ...]:
    return (
        f"{run.side.title}, {run.connectors} connectors, {_times(len(run.held))}",
        _spread(Spread.of(run.seconds), 1),
        _spread(Spread.of(run.cpu_s), 1),
        _codes(run.codes),
        *(_held(each) for each in (run.held_with_all, run.held[0], run.held[-1])),
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _held(held: Holdings) -> str:
    return f"{held.rss_mb:.0f} MB, {held.threads} threads, {held.sockets} sockets, {held.descriptors} files"


def topics_table(results: Results) -> Table:
    columns = (
        "",
        "topics made",
        "all there after, s",
        "CPU s until then",
        "the brokers'",
        "requests",
        "then CPU s a minute",
        "the brokers'",
        "requests a minute",
        "peak memory, MB",
    )
    title = "Many topics: the first sync, and looking at them again"
    return Table(title, columns, tuple(_topics_row(run) for run in results.topics))


def _topics_row(run: TopicsRun) -> tuple[str, ...]:
    return (
        run.side.title,
        f"{run.made:,} of {run.topics:,}",
        _digits(run.first_sync_s),
        _digits(run.first_cpu_s),
        _digits(run.first_brokers_cpu_s),
        _requests(run.first_requests),
        _digits(run.steady_cpu_s),
        _digits(run.steady_brokers_cpu_s),
        _requests(run.steady_requests or {}),
        f"{run.peak_pss_mb:.0f}",
    )


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _requests(counts: Mapping[str, float]) -> str:
    """Counts of each kind, as text."""
    return ", ".join(f"{count:,.0f} {name}" for name, count in sorted(counts.items())) or "-"


def resource_table(results: Results) -> Table:
    """A table of measurements that only sparkmirror has."""
    rows = [*_memory_rows(results), *_idle_rows(results), *_growth_rows(results)]
    return Table("sparkmirror alone", ("", "value"), tuple(rows))


def _memory_rows(results: Results) -> Iterator[tuple[str, str]]:
    for run in results.memory:
        yield (
            "one copy task, 8 partitions at full speed: its Python worker, peak",
            f"{run.peak_worker_pss_mb:.0f} MB",
        )
        yield "the same: all processes, peak", f"{run.peak_pss_mb:.0f} MB"
        yield "the same: throughput with one task", f"{run.copying.records_per_s:,.0f} records/s"


def _idle_rows(results: Results) -> Iterator[tuple[str, str]]:
    for run in results.idle:
        what = f"{run.partitions:,} idle partitions, one task, over {run.seconds:.0f} s"
        yield from _quiet_rows(what, run)


def _quiet_rows(what: str, run: IdleRun) -> Iterator[tuple[str, str]]:
    yield f"{what}: all processes", f"{run.all_processes_percent:.2f} % of a core"
    yield f"{what}: the task's Python worker", f"{run.worker_percent:.2f} % of a core"
    yield f"{what}: memory of all processes", f"{run.peak_pss_mb:.0f} MB"


def _growth_rows(results: Results) -> Iterator[tuple[str, str]]:
    for run in results.grown:
        what = f"{run.partitions:,} quiet partitions, one task"
        yield f"{what}: first record in all of them, after the start", f"{run.start_s:.1f} s"
        yield from _quiet_rows(f"{what}, a record now and then in some, over {run.seconds:.0f} s", run)


def failure_table(results: Results) -> Table:
    """JSON has the reasons in full."""
    rows = tuple((failure.title, _cell(failure.reason)) for failure in results.failures)
    return Table("Runs that failed", ("", "reason"), rows)


def _cell(text: str) -> str:
    """One line without column marks; the middle of a long text is left out."""
    line = " ".join(text.replace("|", "/").split())
    return (
        line
        if len(line) <= _REASON_CHARS
        else f"{line[: _REASON_CHARS // 2]} … {line[-_REASON_CHARS // 2 :]}"
    )
