"""Two clusters in memory, the flows between them, and the tasks that copy."""

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.batches.provenance_header import HEADER
from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import OffsetSyncPlan, StatePlan, TaskPlan, TransactionPlan
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.incidents import OnBadBatch, Reactions
from sparkmirror.domain.known_brokers import Meant
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import CopySettings
from tests.memory.checked_flow import ATTEMPTS, POSITIONS, SYNCS, CheckedFlow, Ends
from tests.memory.cluster import MemoryCluster
from tests.memory.ledger import Due
from tests.memory.network import MemoryNetwork
from tests.memory.source_records import FITS_BYTES, BadKind
from tests.memory.transformed import Transforms
from tests.memory.virtual_time import TurnExecutor, VirtualTime
from tests.support.batches import Rec, encode

TOPIC: Final = "orders"
REMOTE: Final = "near.orders"
NEAR: Final = Alias("near")
FAR: Final = Alias("far")
_BACK: Final = b"back-"
"""Before the numbers of records that the opposite flow copies."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of the clusters, the records of the source, and the settings of tasks."""

    partitions: int = 2
    source_brokers: int = 2
    target_brokers: int = 2
    is_transactional: bool = False
    transaction_version: int = 2
    lag_max: int = 10
    in_flight_max: int = 5
    buffer_bytes: int = 32 << 20
    is_lossy: bool = False
    """Whether logs may lose records and topics may be replaced: then only what comes later must arrive."""
    reads_committed: bool = False
    """Whether the source has transactions."""
    is_compacted: bool = False
    """Whether the source has gaps."""
    bad: BadKind | None = None
    on_bad_batch: OnBadBatch = OnBadBatch.FAIL
    is_two_way: bool = False
    """Whether a second flow goes back, and both keep the topic's name."""
    provenance_header: bool = False
    transforms: Transforms | None = None
    is_fenced: bool = True
    """Whether attempts are recorded and fenced; else they may repeat records."""
    preserves_offsets: bool = False
    source_start: int = 0
    """The offset where the source's logs begin."""
    written_max: int = 6
    """The number of records that are written at once."""


class RunningTask:
    """A copy loop in a turn of its own; `kill` ends it as the end of its process would."""

    def __init__(self, network: MemoryNetwork, plan: TaskPlan) -> None:
        self._executor = network.executor()
        self._coordinator = network.executor(1)
        self._main: TurnExecutor = network.executor()
        self._events = network.loop()
        self.loop = CopyLoop(plan, loop=self._events, executor=self._executor, coordinator=self._coordinator)
        self._run = self._main.submit(self.loop.run)

    @property
    def is_over(self) -> bool:
        """Raises what the loop raised."""
        if self._run.done():
            self._run.result()
            return True
        return False

    def when_over(self, call: Callable[[], object]) -> None:
        """Call it when the loop ends by itself."""
        self._run.add_done_callback(lambda _: call())

    def kill(self) -> None:
        for executor in self._executors:
            executor.abandon()
        self._events.set_exception_handler(lambda *_: None)  # called when what never ended is collected

    def freeze(self) -> None:
        """Freeze a task as SIGSTOP does: messages to it wait for `thaw`, and its timers continue."""
        for executor in self._executors:
            executor.freeze()

    def thaw(self) -> None:
        for executor in self._executors:
            executor.thaw()

    @property
    def _executors(self) -> tuple[TurnExecutor, ...]:
        return self._main, self._executor, self._coordinator


class Stage:
    """`violations` has what must never happen, as soon as it happens."""

    def __init__(self, rng: random.Random, shape: Shape, name: str = "") -> None:
        self.rng = rng
        self.shape = shape
        self._is_repaired = False
        self.time = VirtualTime()
        self.network = MemoryNetwork(self.time, rng)
        self.source = self._cluster(f"source{name}", shape.source_brokers)
        self.target = self._cluster(f"target{name}", shape.target_brokers)
        self.clusters = self.source, self.target
        self._attempts = itertools.count()
        self.violations: list[str] = []
        self.source.create(TOPIC, shape.partitions)
        for at in range(shape.partitions):
            self.source.log(TopicPartition(TOPIC, at)).begin_at(shape.source_start)
        remote = TOPIC if shape.is_two_way else REMOTE
        self.target.create(remote, shape.partitions, _config_of(shape))
        forward = Ends(Flow(NEAR, FAR), self.source, self.target, TOPIC, remote)
        ways = [forward]
        if shape.is_two_way:
            ways.append(Ends(Flow(FAR, NEAR), self.target, self.source, TOPIC, TOPIC, _BACK))
            for cluster in self.clusters:
                cluster.create(PRODUCER_IDS_TOPIC, 1, {"cleanup.policy": "compact"})
        self.flows = [self._flow(ends) for ends in ways]
        self.forward = self.flows[0]
        self.records = self.forward.records
        if shape.is_lossy:
            for flow in self.flows:
                flow.records.due = Due.MAY

    def _cluster(self, name: str, brokers: int) -> MemoryCluster:
        cluster = MemoryCluster(self.time, name, brokers=brokers, rng=self.rng)
        cluster.transaction_version = self.shape.transaction_version
        for broker in cluster.brokers:
            self.network.add(broker.host, broker.port, broker)
        addresses = tuple((broker.host, broker.port) for broker in cluster.brokers)
        self.network.known_brokers.mean(addresses, Meant(cluster.name, name))
        return cluster

    def _flow(self, ends: Ends) -> CheckedFlow:
        shape = self.shape
        return CheckedFlow(
            ends,
            shape.partitions,
            self._violated,
            is_transactional=shape.is_transactional,
            is_lossy=shape.is_lossy,
            is_fenced=shape.is_fenced,
            preserves_offsets=shape.preserves_offsets,
            reads_committed=shape.reads_committed,
            transforms=shape.transforms,
            added=((HEADER.decode(), ends.flow.source.encode()),) if shape.provenance_header else (),
        )

    def plan(self, flow: CheckedFlow | None = None) -> TaskPlan:
        flow = flow or self.forward
        ends, shape = flow.ends, self.shape
        source, target = self._connection(ends.source), self._connection(ends.target)
        partitions = [TopicPartition(ends.topic, at) for at in range(shape.partitions)]
        return TaskPlan(
            flow=ends.flow,
            connector=ConnectorName("drill"),
            task=0,
            job_epoch=1,
            announced_at=0,
            partitions=tuple(
                CopyPartition(
                    partition,
                    ends.remote,
                    preserves_offsets=shape.preserves_offsets,
                    transforms=None if shape.transforms is None else shape.transforms.chain,
                )
                for partition in partitions
            ),
            consumer=ConsumerSettings(source, read_committed=shape.reads_committed),
            producer=replace(ProducerSettings(target), in_flight_max=shape.in_flight_max),
            state=StatePlan(target, POSITIONS, flow.progress_topic, ATTEMPTS if shape.is_fenced else None),
            offset_syncs=OffsetSyncPlan(source, SYNCS, lag_max=shape.lag_max),
            settings=CopySettings(
                Reactions(on_bad_batch=shape.on_bad_batch),
                provenance_header=shape.provenance_header,
            ),
            buffer_bytes_max=shape.buffer_bytes,
            transaction=TransactionPlan("drill", 60.0) if shape.is_transactional else None,
            names_show_origin=not shape.is_two_way,
        )

    def _connection(self, cluster: MemoryCluster) -> ConnectionSettings:
        addresses = tuple((broker.host, broker.port) for broker in cluster.brokers)
        return ConnectionSettings(addresses, network=self.network)

    def run_task(self, flow: CheckedFlow | None = None) -> RunningTask:
        return RunningTask(self.network, replace(self.plan(flow), attempt=next(self._attempts)))

    @property
    def written(self) -> Mapping[int, int]:
        """The number of records written to each partition of the source."""
        return {at: ledger.count for at, ledger in enumerate(self.records.ledgers)}

    def write(self, partition: int, count: int) -> None:
        """So many records as one batch at the end of the source's partition."""
        self.records.write(partition, count)

    def calm(self) -> None:
        """Lose no requests from now on."""
        for flow in self.flows:
            flow.records.due = Due.MUST

    def repair(self) -> None:
        """Accept what was refused, and restore what was damaged."""
        self._is_repaired = True
        self.restore_target_config()
        self.records.repair()

    @property
    def target_config(self) -> dict[str, str]:
        """The configuration of the target topic, to be changed."""
        return self.target.topics[self.forward.ends.remote].config

    def restore_target_config(self) -> None:
        """Restore the target's config of the beginning, or that since `repair`."""
        self.target_config.clear()
        if not self._is_repaired:
            self.target_config.update(_config_of(self.shape))

    def delete_topic(self, cluster: MemoryCluster, topic: str) -> None:
        if topic in cluster.topics:
            cluster.delete(topic)

    def replace_topic(self, cluster: MemoryCluster, topic: str) -> None:
        self.delete_topic(cluster, topic)
        cluster.create(topic, self.shape.partitions)
        if topic == REMOTE:
            self.forward.target_is_replaced()
        else:
            self.records.replaced()
        cluster.changed()

    def lead_elsewhere(self, cluster: MemoryCluster) -> None:
        """Another cluster answers at the brokers' addresses. It has topics of the same names."""
        other = MemoryCluster(
            self.time, f"another {cluster.name}", brokers=len(cluster.brokers), rng=self.rng
        )
        for name, topic in cluster.topics.items():
            for at, log in enumerate(other.create(name, len(topic.partitions)).partitions):
                log.append(bytes(encode([Rec(0, other.now_ms(), b"key", b"of another cluster %d" % at)])), 0)
        other.observers.append(lambda at, _: self._violated(f"{at} of another cluster is written"))
        for broker, there in zip(cluster.brokers, other.brokers, strict=True):
            there.host, there.port = broker.host, broker.port
            self.network.add(broker.host, broker.port, there)
        self.network.disconnect()

    def lead_back(self, cluster: MemoryCluster) -> None:
        for broker in cluster.brokers:
            self.network.add(broker.host, broker.port, broker)
        self.network.disconnect()

    def copied(self, partition: int) -> list[int]:
        """The numbers of the source's records that are committed in the target."""
        return self.forward.copied(partition)

    @property
    def is_complete(self) -> bool:
        return all(flow.is_complete for flow in self.flows)

    def run_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Whether it held in time."""
        return self.time.run_until(holds, timeout_s)

    def check_committed(self) -> None:
        """Check at any time that committed positions name committed records only."""
        for flow in self.flows:
            flow.check_committed()

    def _violated(self, what: str) -> None:
        self.violations.append(f"{self.time.time():.3f}: {what}")


def _config_of(shape: Shape) -> dict[str, str]:
    """The target topic's, which refuses what is bad."""
    match shape.bad:
        case BadKind.TOO_LARGE:
            return {"max.message.bytes": str(FITS_BYTES)}
        case BadKind.NO_KEY:
            return {"cleanup.policy": "compact"}
        case _:
            return {}
