"""Carries out a plan on a bed. A run that fails becomes a `Failure`; the others continue."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

from confluent_kafka import KafkaException

from bench import (
    dataset,
    drill,
    far,
    growth,
    hot,
    idle,
    latency,
    many_groups,
    many_topics,
    pairs,
    rest,
    throughput,
    translation,
    translation_data,
)
from bench.bed import Bed
from bench.dataset import Dataset
from bench.errors import BenchError
from bench.far import Load
from bench.latency import Timing
from bench.plan import Grown, Hot, ManyGroups, ManyTopics, Plan, Rest
from bench.results import Failure, LatencyRun, Pairing, RestLoadRun, Results, ThroughputRun, Victim
from bench.sides import Side
from bench.throughput import Job
from bench.workloads import (
    DRILL,
    EXACTLY_ONCE,
    FAR,
    GROUPS,
    GROWTH,
    HOT,
    IDLE,
    LATENCY,
    MEMORY,
    REST,
    TOPICS,
    TRANSACTIONAL,
    TRANSLATION,
    Workload,
)
from sparkmirror.domain.errors import SparkmirrorError


@dataclass(frozen=True, slots=True)
class Runner:
    """`say` gets one line for each thing that happens."""

    bed: Bed
    plan: Plan
    results: Results
    say: Callable[[str], None]

    @property
    def _timing(self) -> Timing:
        return Timing(self.plan.latency_warm_up_s, self.plan.latency_s)

    def run(self) -> None:
        for workload in self.plan.workloads:
            self._throughput(workload)
        if self.plan.latency_runs:
            self._latencies()
        if self.plan.memory_workload:
            self._memory(self.plan.memory_workload)
        for workload in self.plan.pair_workloads:
            self._pairs(workload)
        if self.plan.idle_partitions:
            self._attempt(Failure(IDLE, Side.OURS, 1), self._idle)
        if self.plan.far_megabytes:
            for load in far.LOADS:
                self._attempt(Failure(FAR, Side.OURS, 1), partial(self._far, load))
        for side, victim in self.plan.drills:
            self._attempt(Failure(DRILL, side, 1), partial(self._drill, side, victim))
        self._many_partitions()
        self._groups()
        self._rest()
        self._topics()

    def _throughput(self, workload: Workload) -> None:
        data = self._write(workload)
        self.results.datasets.append(data)
        if Side.CEILING in workload.sides:
            self._warm_up(data)
        for run in range(1, self.plan.runs + 1):
            for side in self.plan.order(run, workload):
                job = _job(workload, data, side, run)
                self._attempt(Failure(workload.name, side, run), partial(self._copy, side, job))
        self.bed.drop_data()

    def _warm_up(self, data: Dataset) -> None:
        """One replay that is not counted, so that the first side does not meet brokers that just started.

        It reads too: the first side to read gigabytes from a source's broker would pay for its warming up.
        """
        job = Job(data.workload, 0, f"{data.workload}-warmup", data.topic, data.records)
        replay = partial(throughput.measure, self.bed, Side.CEILING_READS, job)
        self._attempt(Failure(data.workload, Side.CEILING_READS, 0), partial(_uncounted, replay))

    def _copy(self, side: Side, job: Job) -> str:
        run = throughput.measure(self.bed, side, job)
        self.results.throughput.append(run)
        return _copied(run)

    def _latencies(self) -> None:
        """The first rounds only warm brokers up: they compile for minutes what single records ask of them."""
        warm_ups = self.plan.latency_warm_ups
        for run in range(1, warm_ups + 1):
            for side in self.plan.latency_order(run):
                delay = partial(latency.measure, self.bed, side, run, self._timing)
                self._attempt(Failure(LATENCY, side, run), partial(_uncounted, delay))
        for run in range(warm_ups + 1, warm_ups + self.plan.latency_runs + 1):
            self._attempt(Failure(LATENCY, None, run), partial(self._delay, None, run))
            for side in self.plan.latency_order(run):
                self._attempt(Failure(LATENCY, side, run), partial(self._delay, side, run))

    def _delay(self, side: Side | None, number: int) -> str:
        run = (
            latency.measure(self.bed, side, number, self._timing)
            if side
            else latency.floor(self.bed, number, self._timing)
        )
        self.results.latency.append(run)
        return _delayed(run)

    def _memory(self, workload: Workload) -> None:
        data = self._write(workload)
        self._attempt(Failure(MEMORY, Side.OURS, 1), partial(self._one_task, data))
        self.bed.drop_data()

    def _one_task(self, data: Dataset) -> str:
        job = Job(MEMORY, 1, "memory1", data.topic, data.records)
        run = throughput.measure(self.bed, Side.OURS, job, tasks_max=1)
        self.results.memory.append(run)
        return f"{_copied(run)}; its Python worker held up to {run.peak_worker_pss_mb:.0f} MB"

    def _idle(self) -> str:
        run = idle.measure(self.bed, self.plan.idle_partitions, self.plan.idle_s)
        self.results.idle.append(run)
        return f"{run.all_processes_percent:.1f} % of a core, the Python worker {run.worker_percent:.1f} %"

    def _pairs(self, workload: Workload) -> None:
        data = self._write(workload)
        for number, pairing in self.plan.pairings:
            pair = partial(self._pair, data, pairing, number)
            self._attempt(Failure(EXACTLY_ONCE, Side.OURS, number), pair)
        self.bed.drop_data()

    def _pair(self, data: Dataset, pairing: Pairing, number: int) -> str:
        run = pairs.measure(self.bed, data, pairing, number)
        self.results.pairs.append(run)
        return (
            f"{pairing.value}: {run.default_records_per_s:,.0f} rec/s by default, "
            f"{run.at_least_once_records_per_s:,.0f} at least once: {run.throughput_ratio:.3f} times, "
            f"CPU {run.cpu_ratio:.3f} times"
        )

    def _far(self, load: Load) -> str:
        run = far.measure(self.bed, load, self.plan.far_megabytes)
        self.results.far.append(run)
        return f"{run.name}: {run.bytes_per_s / 1e6:.1f} of {run.bound_bytes_per_s / 1e6:.1f} MB/s"

    def _many_partitions(self) -> None:
        if planned := self.plan.hot:
            for side, neighbours in product(self.plan.hot_sides, (0, planned.neighbours)):
                self._attempt(Failure(HOT, side, 1), partial(self._hot, side, planned, neighbours))
        if grown := self.plan.grown:
            self._attempt(Failure(GROWTH, Side.OURS, 1), partial(self._quiet, grown))

    def _hot(self, side: Side, planned: Hot, neighbours: int) -> str:
        run = hot.measure(
            self.bed,
            side,
            planned,
            neighbours,
            repetitions=self.plan.runs,
            batch_bytes=self.plan.batch_bytes,
        )
        self.results.hot.append(run)
        rates = ", ".join(f"{burst.records_per_s:,.0f}" for burst in run.bursts)
        cpu = ", ".join(f"{burst.cpu_s_per_million:.2f}" for burst in run.bursts)
        return (
            f"one hot partition beside {neighbours:,} quiet ones: {rates} rec/s, "
            f"{cpu} CPU s per million, {run.peak_pss_mb:.0f} MB"
        )

    def _quiet(self, grown: Grown) -> str:
        run = growth.quiet(self.bed, grown)
        self.results.grown.append(run)
        return (
            f"{run.partitions:,} quiet partitions: each had its first record after {run.start_s:.1f} s; then "
            f"{run.all_processes_percent:.1f} % of a core, {run.peak_pss_mb:.0f} MB"
        )

    def _groups(self) -> None:
        sides = self.plan.mirror_sides
        if self.plan.translated and sides:
            self.say(f"{TRANSLATION}: writing the topics, and waiting for the broker's cleaner")
            translation_data.write(self.bed)
            for side in sides:
                self._attempt(Failure(TRANSLATION, side, 1), partial(self._translate, side))
            self.bed.drop_data()
        if planned := self.plan.many_groups:
            for side in sides:
                self._attempt(Failure(GROUPS, side, 1), partial(self._many_groups, side, planned))

    def _translate(self, side: Side) -> str:
        runs = translation.measure(self.bed, side)
        self.results.translations += runs
        return "; ".join(
            f"{run.moment.value}, {run.kind}: {run.mean:,.1f} (at most {max(run.again):,}) read again, "
            f"{run.missed:,} missed"
            for run in runs
        )

    def _many_groups(self, side: Side, planned: ManyGroups) -> str:
        run = many_groups.measure(self.bed, side, planned)
        self.results.many_groups.append(run)
        after = "not all came" if run.took_s is None else f"their checkpoints within {run.took_s:.1f} s"
        return (
            f"{run.groups:,} groups in {run.partitions} partitions: {run.written_at_first:,} checkpoints in "
            f"the first minute; {run.moved_cpu_s:.2f} CPU s in {run.interval_s:.0f} s in which all moved, "
            f"{after}; {run.peak_pss_mb:.0f} MB"
        )

    def _rest(self) -> None:
        if planned := self.plan.rest:
            self._attempt(Failure(REST, None, 1), partial(self._rest_floor, planned))
            for side in self.plan.mirror_sides:
                self._attempt(Failure(REST, side, 1), partial(self._rest_of, side, planned))

    def _rest_floor(self, planned: Rest) -> str:
        run = rest.floor(planned)
        self.results.rest_loads.append(run)
        return _polled(run)

    def _rest_of(self, side: Side, planned: Rest) -> str:
        load, rounds = rest.measure(self.bed, side, planned.of(side))
        self.results.rest_loads.append(load)
        self.results.rest_rounds.append(rounds)
        seconds = ", ".join(f"{seconds:.1f}" for seconds in rounds.seconds)
        held = ", ".join(f"{each.rss_mb:.0f} MB {each.threads}/{each.sockets}" for each in rounds.held)
        return f"{_polled(load)}; rounds of {seconds} s; held after each (threads/sockets): {held}"

    def _topics(self) -> None:
        if planned := self.plan.many_topics:
            self.say(f"{TOPICS}: creating {planned.topics:,} topics on the source")
            many_topics.write(self.bed, planned)
            for side in self.plan.mirror_sides:
                self._attempt(Failure(TOPICS, side, 1), partial(self._many_topics, side, planned.of(side)))
            self.bed.drop_data()

    def _many_topics(self, side: Side, planned: ManyTopics) -> str:
        run = many_topics.measure(self.bed, side, planned)
        self.results.topics.append(run)
        asked = dict(run.first_requests)
        until = f"{run.first_cpu_s:.1f} CPU s and {asked} until then"
        if run.first_sync_s is None or run.steady_cpu_s is None:
            return f"{run.made:,} of {run.topics:,} topics were made, {until}"
        return (
            f"{run.topics:,} topics after {run.first_sync_s:.1f} s, {until}; "
            f"then {run.steady_cpu_s:.1f} CPU s and {dict(run.steady_requests or {})} a minute"
        )

    def _drill(self, side: Side, victim: Victim) -> str:
        run = drill.measure(self.bed, side, victim, self.plan.drill_kills)
        self.results.drills.append(run)
        return (
            f"{run.kills} times {victim.value} killed: {run.duplicates:,} duplicates and {run.losses:,} "
            f"losses among {run.records:,} records, at most {run.longest_stall_s:.1f} s without data"
        )

    def _write(self, workload: Workload) -> Dataset:
        self.say(
            f"{workload.title}: writing {workload.records:,} records, and {workload.mm2_records:,} for MM2"
        )
        return dataset.write(self.bed.source, workload, self.plan.batch_bytes)

    def _attempt(self, attempt: Failure, action: Callable[[], str]) -> None:
        """`attempt` becomes a failure when `action` raises; otherwise its sentence is said."""
        try:
            outcome = action()
        except (BenchError, KafkaException, SparkmirrorError) as error:
            self.results.failures.append(attempt.because(str(error)))
            outcome = f"failed: {error}"
        self.say(f"{attempt.title}: {outcome}")


def _uncounted(measure: Callable[[], object]) -> str:
    measure()
    return "warm-up of the brokers, not counted"


def _job(workload: Workload, data: Dataset, side: Side, run: int) -> Job:
    """The alias is fresh, so that every side starts without positions."""
    alias = f"{data.workload}{run}{side.value}".replace("-", "")
    topic, records = (data.mm2_topic, data.mm2_records) if side.is_java else (data.topic, data.records)
    if workload.kept < 1:  # of whole batches: a few more or less may arrive
        records = int(records * workload.kept * 0.999)
    in_transactions = workload.name == TRANSACTIONAL.name
    settings = dict(workload.settings)
    return Job(data.workload, run, alias, topic, records, settings, in_transactions, tls=workload.tls)


def _copied(run: ThroughputRun) -> str:
    window = run.copying
    return (
        f"first record after {run.start_s:.1f} s, then {window.records_per_s:,.0f} rec/s "
        f"for {window.seconds:.1f} s, {window.cpu_s_per_million:.2f} CPU s per million, "
        f"{run.peak_pss_mb:.0f} MB"
    )


def _polled(run: RestLoadRun) -> str:
    seen = run.latency
    return (
        f"p50 {seen.p50_ms:.2f}, p99 {seen.p99_ms:.2f}, at most {seen.max_ms:.1f} ms; answers "
        f"{dict(run.codes)}, lost {run.lost}; changes {dict(run.changes)}; CPU {run.cpu_s:.1f} s, "
        f"the clients' {run.client_cpu_s:.1f} s"
    )


def _delayed(run: LatencyRun) -> str:
    seen = run.latency
    return (
        f"p50 {seen.p50_ms:.2f}, p99 {seen.p99_ms:.2f}, p99.9 {seen.p999_ms:.2f} ms, {seen.records:,} records"
    )
