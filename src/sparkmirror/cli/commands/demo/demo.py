"""Runs the demo's phases one after the other, and ends whatever was started when it is left."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from sparkmirror.cli.commands.demo.dashboard import Dashboard
from sparkmirror.cli.commands.demo.mirror_process import SOURCE, TARGET, MirrorProcess, mirror_properties
from sparkmirror.cli.commands.demo.shop import Shop
from sparkmirror.cli.commands.demo.shop_topics import SHOP_TOPICS
from sparkmirror.cli.commands.demo.watch import Watch, has_begun, has_reached
from sparkmirror.cli.commands.verify.table import print_table
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.terminal import StatusLines
from sparkmirror.clusters.cluster_state import ClusterSpec
from sparkmirror.clusters.local import LocalCluster, start_clusters
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.partition_offsets import LATEST, require_offsets
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.settings.configured import MirroringFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.verify.range_comparison import RangeOutcome, RangePlan, outcome_of
from sparkmirror.verify.verdict import FlowVerdict
from sparkmirror.verify.verification_run import Verification

_BEGIN_TIMEOUT_S: Final = 90.0
_ARRIVAL_TIMEOUT_S: Final = 60.0
_TOPICS: Final = tuple(topic.name for topic in SHOP_TOPICS)
_PROGRESS_TOPIC: Final = StateTopic.PROGRESS.of(Alias(SOURCE))
_TICK_S: Final = 0.2
_POSITIONS_TIMEOUT_S: Final = 10.0
"""The time for a mirror that keeps running to store its last positions, up to which is compared."""
_HEAP_MB: Final = 256
"""Brokers this small start fast and compile little: in a demo's minute, more would only take cores away."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the command. `rate` is records per second of all topics together."""

    rate: int
    duration_s: float
    partitions: int
    keep: bool


@dataclass(frozen=True, slots=True)
class _Stage:
    """Holds the processes that run while the demo does."""

    source: LocalCluster
    target: LocalCluster
    shop: Shop
    mirror: MirrorProcess
    properties: Path


class Demo:
    """Runs the demo once, in its work folder."""

    def __init__(self, options: DemoOptions, console: Console, directory: Path) -> None:
        self._options = options
        self._console = console
        self._directory = directory
        self._status = StatusLines(console)

    def run(self) -> bool:
        """Whether every record that was written is the same on both clusters."""
        with ExitStack() as running:
            stage = self._set_up(running)
            self._watch(stage)
            if not self._options.keep:
                self._status.print("Stopping the mirror in order …")
                stage.mirror.stop()
            whole = self._prove(stage)
            if self._options.keep:
                self._keep(stage)
            self._status.print("Stopping both clusters …")
        return whole

    def _set_up(self, running: ExitStack) -> _Stage:
        self._status.print("Starting two Kafka clusters …")
        specs = [(ClusterSpec(name, heap_mb=_HEAP_MB), self._directory / name) for name in (SOURCE, TARGET)]
        with self._status.updates() as update:
            source, target = map(running.enter_context, start_clusters(specs, update))
        self._status.print(f"The source is {source.bootstrap_servers}, the target {target.bootstrap_servers}")
        shop = running.enter_context(closing(Shop(_connection(source), self._options.rate)))
        self._status.print(f"Opening the shop: {', '.join(_TOPICS)}; {self._options.rate:,} records/s …")
        shop.create_topics(self._options.partitions)
        shop.open()
        properties = self._directory / "mm2.properties"
        properties.write_text(mirror_properties(source.bootstrap_servers, target.bootstrap_servers, _TOPICS))
        mirror = running.enter_context(closing(self._start_mirror(properties)))
        return _Stage(source, target, shop, mirror, properties)

    def _start_mirror(self, properties: Path) -> MirrorProcess:
        mirror = MirrorProcess(properties, self._directory / "mirror.log", self._directory / "spark.log")
        self._status.print(f"Running the mirror: sparkmirror run {properties}")
        self._status.print(f"It logs to {mirror.log}")
        return mirror

    def _watch(self, stage: _Stage) -> None:
        self._await_progress_topic(stage)
        reader = ProgressReader(_connection(stage.target), _PROGRESS_TOPIC)
        with closing(reader), Dashboard(self._console) as dashboard:
            watch = Watch(reader.poll, _TOPICS, dashboard, lambda: _check(stage))
            if not watch.until(has_begun, "Spark starts; waiting for the first record", _BEGIN_TIMEOUT_S):
                raise SparkmirrorError(f"the mirror copied nothing within {_BEGIN_TIMEOUT_S:.0f} s")
            watch.until(lambda _: False, "live", self._options.duration_s)
            stage.shop.close()
            ends = _end_offsets(stage.source, self._options.partitions)
            arrived = watch.until(
                lambda snapshot: has_reached(snapshot, ends),
                "the shop is closed, waiting for lag 0",
                _ARRIVAL_TIMEOUT_S,
            )
        if not arrived:
            self._status.print(
                f"The lag is not 0 after {_ARRIVAL_TIMEOUT_S:.0f} s; comparing what has arrived."
            )

    def _await_progress_topic(self, stage: _Stage) -> None:
        # Until the mirror has made the topic there is nothing to show but the time.
        started = time.monotonic()
        with self._status.updates() as update, closing(Admin(_connection(stage.target))) as admin:
            while _PROGRESS_TOPIC not in admin.partition_counts():
                _check(stage)
                waited_s = time.monotonic() - started
                if waited_s > _BEGIN_TIMEOUT_S:
                    raise SparkmirrorError(f"the mirror did not start within {_BEGIN_TIMEOUT_S:.0f} s")
                update(f"Spark starts the mirror: {waited_s:.0f} of {_BEGIN_TIMEOUT_S:.0f} s")
                time.sleep(_TICK_S)

    def _prove(self, stage: _Stage) -> bool:
        self._status.print("Comparing every record on both clusters, as `sparkmirror verify` does …")
        (flow,) = mirroring_flows(stage.properties, read_mirror_maker_file(stage.properties).flows)
        deadline = time.monotonic() + _POSITIONS_TIMEOUT_S
        while True:
            verdict = verify_topics(flow, _TOPICS, self._status)
            # A mirror that runs on stores its positions now and then, and is compared up to these.
            is_settled = not self._options.keep or not lacking(verdict, stage.shop.written)
            if is_settled or not verdict.is_equal or time.monotonic() > deadline:
                return print_proof(self._console, verdict, stage.shop.written)
            time.sleep(_TICK_S)

    def _keep(self, stage: _Stage) -> None:
        self._console.print(
            _invitation(stage, self._directory), highlight=False, markup=False, soft_wrap=True
        )
        try:
            while True:
                stage.mirror.check()
                time.sleep(1)
        except KeyboardInterrupt:
            self._status.print("Stopping the mirror in order …")
            stage.mirror.stop()


def _check(stage: _Stage) -> None:
    stage.mirror.check()
    stage.shop.check()


def _connection(cluster: LocalCluster) -> ConnectionSettings:
    servers = (server.rpartition(":") for server in cluster.bootstrap_servers.split(","))
    return ConnectionSettings(tuple((host, int(port)) for host, _, port in servers), client_id="demo")


def _end_offsets(cluster: LocalCluster, partitions: int) -> Mapping[TopicPartition, int]:
    """The end offset of every partition of the shop's topics."""
    every = [TopicPartition(topic, number) for topic in _TOPICS for number in range(partitions)]
    return require_offsets(ConsumerSettings(_connection(cluster)), every, LATEST)


def _invitation(stage: _Stage, directory: Path) -> str:
    source, target = stage.source.bootstrap_servers, stage.target.bootstrap_servers
    return f"""
Everything keeps running; point your own clients at it:
  source  {source}   topics {", ".join(_TOPICS)}
  target  {target}   topics {", ".join(f"{SOURCE}.{topic}" for topic in _TOPICS)}
For instance, with kcat in two other terminals:
  kcat -b {target} -C -t {SOURCE}.orders -o end
  echo '{{"order":"mine"}}' | kcat -b {source} -P -t orders -k me
The mirror's settings and logs are in {directory}.
Ctrl-C ends it all."""


_OPTION: Final = "topics"


def verify_topics(flow: MirroringFlow, topics: Sequence[str], status: StatusLines) -> FlowVerdict:
    """Compare these topics up to the positions that the flow has stored. Raises SparkmirrorError."""
    verification = Verification([flow], compile_list(topics, _OPTION))
    verification.compare(_compare_here, status)
    (verdict,) = verification.verdicts()
    return verdict


def lacking(verdict: FlowVerdict, written: Mapping[str, int]) -> list[str]:
    """A line for each topic of which more or fewer records are equal on both clusters than were written."""
    equal = dict.fromkeys(written, 0)
    for partition in verdict.partitions:
        equal[partition.source.topic] += partition.comparison.equal
    return [
        f"{topic}: {count:,} records were written, {equal[topic]:,} are equal on both clusters"
        for topic, count in written.items()
        if equal[topic] != count
    ]


def print_proof(console: Console, verdict: FlowVerdict, written: Mapping[str, int]) -> bool:
    """Print what was found; whether the copy is exact and whole."""
    print_table(console, [verdict], brief=True)
    lines = lacking(verdict, written)
    for line in lines:
        console.print(f"[bold red]✗[/] {line}", highlight=False, soft_wrap=True)
    return verdict.is_equal and not lines


def _compare_here(plans: Sequence[RangePlan], on_outcome: Callable[[RangeOutcome], None]) -> None:
    """Compare without Spark: a demo's records are few."""
    for number, plan in enumerate(plans):
        on_outcome(outcome_of(number, plan))
