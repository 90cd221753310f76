"""Writes bench/RESULTS.md: results, machine, method, and an explanation of each missed target. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from bench import many_groups, many_topics, rest, translation
from bench.dataset import Dataset
from bench.drill import RECORDS_PER_S
from bench.far import IN_FLIGHT as FAR_IN_FLIGHT
from bench.goals import (
    KB_PER_DELETED_MAX,
    LATENCY_P99,
    SOCKETS_LEFT_MAX,
    THREADS_LEFT_MAX,
    Goal,
    goals,
    latency_ratio,
    rate,
    ratio,
)
from bench.growth import TRICKLE_RECORDS_PER_S
from bench.hot import HOT_WORKLOAD
from bench.machine import Machine
from bench.measures import Spread
from bench.plan import Plan
from bench.replay import IN_FLIGHT
from bench.report import Table, mirror_cores, other_cores, source_broker_cores, tables, target_broker_cores
from bench.results import Results
from bench.sides import (
    JVM_OPTIONS,
    STRIMZI_HIGH_VOLUME,
    STRIMZI_PAGE,
    STRIMZI_WORKER,
    Mirroring,
    Side,
    properties,
)
from bench.translation_data import IN_TRANSACTION, SEED_IN_TRANSACTION, SEED_RECORDS
from bench.translation_data import PARTITIONS as PARTITIONS_TRANSLATED
from bench.translation_data import RECORDS_PER_S as RECORDS_PER_S_TRANSLATED
from bench.workloads import BY_NAME, COPIED, PARTITIONS, SLOW_ROAD, TRANSACTIONAL, TRANSFORMED, Workload


@dataclass(frozen=True, slots=True)
class Measurement:
    """When, where and how it was measured."""

    date: str
    command: str
    machine: Machine
    plan: Plan
    broker_heap_mb: int
    broker_settings: Mapping[str, str]


def page(results: Results, measurement: Measurement) -> str:
    """The whole page, as Markdown."""
    measured = tables(results)
    head, rest = measured[:1], measured[1:]
    sections = [
        _introduction(measurement),
        *(table.markdown() for table in head),
        *_shortfalls(results, measurement.machine),
        *(table.markdown() for table in rest),
        _machine(measurement.machine),
        _workloads(results),
        _method(measurement),
        _settings(measurement),
    ]
    return "\n".join(sections)


def _introduction(measurement: Measurement) -> str:
    return f"""# Benchmarks

Written on {measurement.date} by the command below; run it again to get this page for your machine. Values are
medians of {measurement.plan.runs} runs (lowest to highest). Everything, both brokers included, shares
{measurement.machine.cores} cores, so compare the sides with each other, not with other machines.

    {measurement.command}
"""


def _shortfalls(results: Results, machine: Machine) -> Iterator[str]:
    """One paragraph for each missed target, with what the cores were doing."""
    missed = [goal for goal in goals(results) if goal.reached is not None and not goal.is_met]
    if not missed:
        return
    yield "### Where a target is missed\n"
    for goal in missed:
        yield f"- **{goal.what}**: {_shortfall(goal)}{_cause(goal, results, machine)}"
    yield ""


def _shortfall(goal: Goal) -> str:
    reached = f"{goal.reached:.3g} {goal.unit} instead of {goal.relation} {goal.target:g}"
    return f"{reached}, {goal.missed_by} too {'little' if goal.relation == '≥' else 'much'}."


def _cause(goal: Goal, results: Results, machine: Machine) -> str:
    """Explain where the cores went in sparkmirror's runs of that workload, or what a relay reaches."""
    if goal.what == LATENCY_P99:
        return _relayed(goal, results)
    workload = next((workload for workload in COPIED if goal.what.startswith(f"{workload.title}:")), None)
    if workload is None:
        return ""
    used = [results.spread(workload.name, Side.OURS, cores) for cores in _CORES]
    names = ("sparkmirror", "the source's broker", "the target's broker", "others")
    shares = (f"{name} {spread.median:.2f}" for name, spread in zip(names, used, strict=True) if spread)
    cores = f" Of {machine.cores} cores in use meanwhile: {', '.join(shares)}.{_limit(used, machine)}"
    return cores + _read(goal, results, workload)


def _read(goal: Goal, results: Results, workload: Workload) -> str:
    """Say what reading alone takes from the ceiling."""
    beside = ratio(results, workload, Side.OURS, Side.CEILING_READS, rate)
    if goal.bare is None or beside is None:
        return ""
    return (
        f" A ceiling that also reads, and drops what it read, reaches {goal.bare.reached:.3g};"
        f" sparkmirror's throughput is {beside:.3g} times that.{_misses_too(goal)}"
    )


def _relayed(goal: Goal, results: Results) -> str:
    """Say what is left to a mirror that does nothing but read and write."""
    beside = latency_ratio(results, Side.OURS, Side.RELAY, lambda run: run.p99_ms)
    if goal.bare is None or beside is None:
        return ""
    return (
        f" What nothing but a relay reaches on this machine: {goal.bare.reached:.3g} times MM2's;"
        f" sparkmirror's p99 is {beside:.3g} times the relay's.{_misses_too(goal)}"
    )


def _misses_too(goal: Goal) -> str:
    """Whether the machine has room for the target at all."""
    assert goal.bare is not None
    is_met = replace(goal, reached=goal.bare.reached).is_met
    return "" if is_met else " So what does nothing else misses the target as well."


_CORES = (mirror_cores, source_broker_cores, target_broker_cores, other_cores)


def _limit(used: list[Spread | None], machine: Machine) -> str:
    busy = sum(spread.median for spread in used if spread) / machine.cores
    if busy > 0.9:
        return " The machine is full: what the others take, the mirror can't have."
    return f" {100 * (1 - busy):.0f} % of the machine was idle: the limit is waiting, not work."


def _machine(machine: Machine) -> str:
    rows = "\n".join(
        f"| {field.name.replace('_', ' ')} | {getattr(machine, field.name)} |" for field in fields(machine)
    )
    return f"## Machine\n\n| | |\n|---|---|\n{rows}\n"


def _workloads(results: Results) -> str:
    columns = (
        "workload",
        "records",
        "for MM2",
        "records per batch",
        "bytes per batch",
        "compression",
        "compacted away",
    )
    rows = tuple(_workload_row(data, BY_NAME[data.workload]) for data in results.datasets)
    return Table("Workloads", columns, rows).markdown()


def _workload_row(data: Dataset, workload: Workload) -> tuple[str, ...]:
    counts = (data.records, data.mm2_records, data.records_per_batch, data.bytes_per_batch)
    compression = f"{data.compression(workload.record_bytes):.1f} : 1"
    return (workload.title, *(f"{count:,.0f}" for count in counts), compression, f"{100 * data.gone:.0f} %")


def _method(measurement: Measurement) -> str:
    plan = measurement.plan
    return f"""## Method

- "MM2, tuned" has Strimzi's settings for high volumes of messages, below; "ceiling" is a producer that reads
  nothing, the most that the target takes.
- Sides take turns, in an order that rotates from run to run. Each run has an alias of its own, so it starts
  at the earliest offset without stored positions; the target topic exists already with {PARTITIONS}
  partitions; all topics of a run are deleted after it.
- Before the first run of a workload the batches are read and replayed once without being counted, so that no
  side meets brokers that have just started.
- MM2 copies a shorter topic of the same batches, so that runs of all sides take about as long: ten seconds
  and more, so that its JVM compiles its hot code, and that the moments in which tasks begin and end weigh
  little. The columns for the second half show what MM2 does after that.
- Throughput: the target's end offsets, asked for 20 times a second, from the first answer that shows a record
  to the first that shows the last one. Every side is asked in the same way.
- CPU: user and system time of all processes of a side between those two moments: JVMs, Python workers, and
  processes that have ended. Start-up and the whole life, shutdown included, are separate columns. The brokers
  are counted apart.
- Memory: the sum of the proportional set sizes of all processes, looked at once a second; the peak.
- The ceiling's program holds the source's batches in memory before it begins, then only sends them: one
  batch a partition in each Produce request, on {plan.tasks_max} connections with up to {IN_FLIGHT} requests
  under way on each, until as many records have been sent.
- The ceiling that reads also fetches every batch from the source and drops it, a few batches ahead of what it
  sends from memory. It looks at nothing but lengths: that is the least that any mirror has to do on this
  machine.
- MM2 encodes every record again with its producer's settings, so with its defaults the target of an lz4 topic
  is uncompressed. sparkmirror and the ceiling keep the batches as they are.
- Latency: 1,000 records/s of 100 B with `linger.ms=0`, from before `produce` to after `poll` in processes of
  their own, on one clock; {plan.latency_s:.0f} s after {plan.latency_warm_up_s:.0f} s of warm-up. A consumer
  on the source itself shows the floor. The first {plan.latency_warm_ups} rounds of each side are not counted:
  for minutes a broker that has just started compiles what single records ask of it, on the cores that a
  mirror needs too. MM2 with Strimzi's settings is left out: it waits 100 ms on purpose.
- The relay, in the latency runs only, is one librdkafka consumer and one librdkafka producer in each of
  {plan.tasks_max} processes, from Python, with `linger.ms=0`, `acks=all` and idempotence. It takes its turn
  among the sides, stores no positions, maps no offsets and guarantees nothing. Its row is what nothing but a
  relay reaches on this machine, where two brokers, the probe and the mirror share {measurement.machine.cores}
  cores: how much of a mirror's latency is the machine's.
- SIGKILL under load: {RECORDS_PER_S:,} numbered records per second, while a Python worker of Spark's, or
  every process of a side, is killed and started again at once, as a supervisor would. In the end every
  record of the target is read and counted. The time without data is the longest in which some partition got
  none; records that are copied once more count as data. MM2 is one process. With Connect's defaults it
  stores its positions every 60 s (`offset.flush.interval.ms`), and after a crash copies once more what came
  since.
- Re-encoding, where sparkmirror must open batches: "one-record batches" hold 100 B each; "compacted" is
  what the source broker's own cleaner left of a topic with `cleanup.policy=compact` in which every second
  record has the same key, so that each batch has gaps (afterwards its settings are Kafka's defaults again,
  so that no cleaner works beside the mirrors); "lz4 to zstd" has a setting that asks for it, below. MM2
  copies the same topics, except for the zstd one, of which it gets less. There is no ceiling: a broker
  takes no batches with gaps from a producer.
- In transactions: settings for both mirrors, below. The markers at the ends of transactions, which have
  offsets of their own on the target, are counted afterwards and taken off.
- Exactly-once by default beside at-least-once: runs of some minutes ago differ by more than what is looked
  for. So one copy task runs without Spark, in the benchmark's process, for a second or two, once with the
  defaults and once with `target.producer.enable.idempotence=false`, who comes first changing each time; the
  two of each such pair are compared, and the median of the pairs' ratios is what counts. CPU is that of the
  whole process, the probe's share included. Without idempotence a partition has one batch under way only, so
  that none overtakes another, and is slower for that. So the pairs that count have
  `target.producer.max.in.flight.requests.per.connection=1` on both sides; every third is followed by one
  without it, to show how the settings compare as they are usually run.
- A long way: a proxy before one of the clusters delays every byte by half the round trip each way and
  limits nothing else. At most, {FAR_IN_FLIGHT} requests of `max.request.size` (1 MiB) are under way to the
  target, a batch of each partition in each, and one Fetch to the source with `max.partition.fetch.bytes` of
  each partition. One copy task without Spark, from a tenth of the data to its end.
- Quiet partitions: {TRICKLE_RECORDS_PER_S} records per second, each in one of them taken at random. Before,
  each gets one record; "first record in all of them" is when the target has all of those.
- A hot partition: a mirror with one task (`tasks.max` is 1, alone and beside the quiet partitions) is halted
  (SIGSTOP) while the partition is filled with batches of "{HOT_WORKLOAD.title}", then continues; as often as
  there are runs. Each quiet partition holds one record. CPU is that of all processes of the mirror from the
  first new record on the target to the last; memory, the peak of its whole life.
{_groups_method()}
{_rest_method(plan)}
{_topics_method(plan)}
- Source data: confluent-kafka writes batches of {plan.batch_bytes:,} B uncompressed with JSON-like values;
  copies of these batches fill the topic.
"""


def _groups_method() -> str:
    groups, lag, interval_s = translation.GROUPS, f"{translation.LAG_MAX:,}", many_groups.INTERVAL_S
    records, rate, partitions = f"{SEED_RECORDS:,}", RECORDS_PER_S_TRANSLATED, PARTITIONS_TRANSLATED
    return f"""- Failing over: {groups} groups at each moment, with offsets in {partitions} partitions each of
  three topics: one with all its records, one in which the broker's cleaner left gaps, one in transactions (of
  {SEED_IN_TRANSACTION} records at first, of {IN_TRANSACTION} later). "All is copied": {records} records were
  written to each, and copied as fast as the mirror can; offsets are taken at random from all of them. Then
  {rate} records a second come to each topic, and offsets are taken from those; the mirror is stopped and
  started again meanwhile. "Read along": groups that commit twice a second, up to {lag} offsets behind the
  end. What such a group reads again is mostly as old as its last checkpoint, so it is also held against the
  offset that the checkpoint itself names. In the end all records of both sides are read: the n-th here is
  the n-th there, so the true place of each offset is known. "In runs" are offsets for which some sync of
  that time speaks: sparkmirror's speak for all records since the last gap, Java's for one. Settings for
  both, below.
- Checkpoints of many groups: every {interval_s} s. After the first ones nothing moves for an interval, then
  all groups commit in all partitions at once. CPU is that of all processes of a side, by whole intervals;
  of a side that has not written the first ones a minute after it began to, it is that minute's."""


def _rest_method(plan: Plan) -> str:
    asked = plan.rest
    if asked is None:
        return "- REST: not measured."
    clients, connectors, seconds = asked.clients, asked.connectors, f"{asked.seconds:.0f}"
    often, changes, beats = rest.PER_CLIENT_PER_S, rest.CHANGES_PER_S, rest.HEARTBEAT_S
    one_in, changing, settled = rest.SOURCE_EVERY, rest.CHANGING, f"{rest.SETTLED_S:.0f}"
    memory = f"{KB_PER_DELETED_MAX:.0f}"
    few = f"{THREADS_LEFT_MAX:.0f} threads and {SOCKETS_LEFT_MAX:.0f} sockets"
    return f"""- REST: a worker with {connectors} connectors; Java's, started as
  `connect-distributed.sh` does, with {asked.mm2_connectors}, because each change takes it seconds.
  One in {one_in} is a MirrorSourceConnector without topics, the others emit heartbeats every {beats} s.
  {clients} clients in one process, each on a connection that stays, ask for a status {often} times a second
  for {seconds} s. The time of an answer counts from when it was due to be asked for. Meanwhile, {changes}
  times a second, one of {changing} connectors is paused, resumed, reconfigured, deleted or created again;
  what a worker refuses with 409, as Java's do while their group rebalances, is asked for again. One that
  is just deleted answers 404. The same clients before a server that always says the same show what the
  measuring takes.
- Then all connectors are created, reconfigured and deleted, one request after the other, under new names
  in each round. What the process that serves the API holds is looked at {settled} s after all are gone. Up
  to {few} more are no growth: some come and go anyway (pools, idle connections),
  and a leak would be one for each connector. Nor are {memory} KB for each, a small part of what a running
  connector holds."""


_FEWER = """ MM2 gets {} of
  them: it asks for all in one request, and KRaft's controller refuses those that would make more than 10,000
  records, two for each topic and one for each config. Of all of them it makes none."""


def _topics_method(plan: Plan) -> str:
    asked = plan.many_topics
    if asked is None:
        return "- Many topics: not measured."
    every, timeout = many_topics.CONFIGURED_EVERY, f"{many_topics.TIMEOUT_S:.0f}"
    refresh, configs = many_topics.REFRESH_S, many_topics.CONFIG_SYNC_S
    settle = f"{many_topics.SETTLE_S:.0f}"
    fewer = "" if asked.mm2_topics == asked.topics else _FEWER.format(f"{asked.mm2_topics:,}")
    topics, seconds = f"{asked.topics:,}", f"{asked.seconds:.0f}"
    return f"""- Many topics: {topics} of one partition, without records, are there before the mirror, and the
  target's broker has made and deleted a fifth as many, so that no side meets one that has just started;
  every {every}rd has a config of its own. "All there" is when the target tells where the log of each one
  ends, and has these configs: a broker lists topics seconds before it has made their logs, and takes records
  then. A side that takes longer than {timeout} s is not waited for. {settle} s later
  the steady state is watched for {seconds} s, in which both look for topics every {refresh} s and sync
  configs every {configs} s. CPU is that of all processes of a side, its tasks that follow the partitions
  included. Requests are those about topics and configs to both clusters, counted by a proxy before
  each.{fewer}"""


def _settings(measurement: Measurement) -> str:
    mirroring = Mirroring(
        "source", "127.0.0.1:19092", "127.0.0.1:29092", "data-1kb", measurement.plan.tasks_max
    )
    tuned = "".join(f"source->target.{key} = {value}\n" for key, value in STRIMZI_HIGH_VOLUME.items())
    tuned += "".join(f"target.{key} = {value}\n" for key, value in STRIMZI_WORKER.items())
    broker = "".join(f"{key} = {value}\n" for key, value in measurement.broker_settings.items())
    return f"""## Settings

mm2.properties, the same for MM2 and sparkmirror (alias and topic differ from run to run):

```properties
{properties(mirroring, Side.MM2)}```

{_added_settings()}
Strimzi's settings for MirrorMaker 2 with high volumes of messages, added for one of the MM2 sides
([Strimzi, Handling high volumes of messages]({STRIMZI_PAGE})):

```properties
{tuned}```

MM2's JVM, as `connect-mirror-maker.sh` starts it: `{" ".join(JVM_OPTIONS)}`.

Brokers: one for each cluster, {measurement.broker_heap_mb} MB of heap, Kafka's defaults except

```properties
{broker}```
"""


def _added_settings() -> str:
    """List the settings that some workloads add for all mirrors."""
    added = {workload.title: workload.settings for workload in (*SLOW_ROAD, TRANSACTIONAL, *TRANSFORMED)}
    added["failing over"] = tuple(translation.SETTINGS.items())
    return "\n".join(
        f'Added for "{title}":\n\n```properties\n{lines}```\n'
        for title, settings in added.items()
        if (lines := "".join(f"{key} = {value}\n" for key, value in settings))
    )
