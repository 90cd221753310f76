"""Two clusters in memory, a task that copies between them, and what holds whatever happens.

A record's value names its place in the source, so that every record, position and offset sync that arrives
can be judged at once.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.batches.log_records import LogRecord, decode_log_batch
from sparkmirror.batches.record_batch import CONTROL, FetchedBatch, iterate_batches
from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import CopyPartition, OffsetSyncPlan, StatePlan, TaskPlan, TransactionPlan
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.storage.offset_sync_topic import parse_offset_sync
from sparkmirror.storage.positions import parse_source_position_value
from tests.memory.cluster import MemoryCluster
from tests.memory.network import MemoryNetwork
from tests.memory.partition_log import PartitionLog, Stored
from tests.memory.virtual_time import TurnExecutor, VirtualTime
from tests.support.batches import Rec, decode, encode

TOPIC: Final = "orders"
REMOTE: Final = "near.orders"
POSITIONS: Final = "positions"
PROGRESS: Final = "progress"
SYNCS: Final = "syncs"

IsCommitted = Callable[[int], bool]
"""Whether a producer id's open transaction is decided, though its markers are not written yet."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the clusters are, and how the task copies."""

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


class RunningTask:
    """A copy loop in a turn of its own; `kill` ends it as the end of its process would."""

    def __init__(self, network: MemoryNetwork, plan: TaskPlan) -> None:
        self._executor = network.executor()
        self._coordinator = network.executor(1)
        self._main: TurnExecutor = network.executor()
        self.loop = CopyLoop(
            plan, loop=network.loop(), executor=self._executor, coordinator=self._coordinator
        )
        self._run = self._main.submit(self.loop.run)

    @property
    def is_over(self) -> bool:
        """Raises what the loop raised."""
        if self._run.done():
            self._run.result()
            return True
        return False

    def kill(self) -> None:
        for executor in self._executors:
            executor.abandon()

    def freeze(self) -> None:
        """As SIGSTOP: what is on its way to it waits for `thaw`, and its timers go on."""
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
        self.time = VirtualTime()
        self.network = MemoryNetwork(self.time, rng)
        self.source = self._cluster(f"source{name}", shape.source_brokers)
        self.target = self._cluster(f"target{name}", shape.target_brokers)
        self.violations: list[str] = []
        self.written: dict[int, int] = dict.fromkeys(range(shape.partitions), 0)
        self._copied: dict[int, list[int]] = {at: [] for at in self.written}
        self._must_arrive: dict[int, list[int]] = {at: [] for at in self.written}
        self._is_calm = not shape.is_lossy
        self.source.create(TOPIC, shape.partitions)
        self.source.create(SYNCS)
        self.target.create(REMOTE, shape.partitions)
        self.target.create(POSITIONS, 2, {"cleanup.policy": "compact"})
        self.target.create(PROGRESS, 1, {"cleanup.policy": "compact"})
        self.target.observers.append(self._target_has)
        self.source.observers.append(self._source_has)

    def _cluster(self, name: str, brokers: int) -> MemoryCluster:
        cluster = MemoryCluster(self.time, name, brokers=brokers, rng=self.rng)
        cluster.transaction_version = self.shape.transaction_version
        for broker in cluster.brokers:
            self.network.add(broker.host, broker.port, broker)
        return cluster

    def plan(self) -> TaskPlan:
        source, target = self._connection(self.source), self._connection(self.target)
        shape = self.shape
        partitions = [TopicPartition(TOPIC, at) for at in range(shape.partitions)]
        return TaskPlan(
            flow=Flow(Alias("near"), Alias("far")),
            connector=ConnectorName("drill"),
            task=0,
            job_epoch=1,
            announced_at=0,
            partitions=tuple(CopyPartition(partition, REMOTE) for partition in partitions),
            consumer=ConsumerSettings(source),
            producer=replace(ProducerSettings(target), in_flight_max=shape.in_flight_max),
            state=StatePlan(target, POSITIONS, PROGRESS),
            offset_syncs=OffsetSyncPlan(source, SYNCS, lag_max=shape.lag_max),
            buffer_bytes_max=shape.buffer_bytes,
            transaction=TransactionPlan("drill", 60.0) if shape.is_transactional else None,
        )

    def _connection(self, cluster: MemoryCluster) -> ConnectionSettings:
        addresses = tuple((broker.host, broker.port) for broker in cluster.brokers)
        return ConnectionSettings(addresses, network=self.network)

    def run_task(self) -> RunningTask:
        return RunningTask(self.network, self.plan())

    def write(self, partition: int, count: int) -> None:
        """So many records as one batch at the end of the source's partition."""
        first = self.written[partition]
        now_ms = int(time.time() * 1000)
        records = [Rec(at, now_ms, b"key", b"%d" % (first + at)) for at in range(count)]
        self.source.log(TopicPartition(TOPIC, partition)).append(bytes(encode(records)), self.source.now_ms())
        if self._is_calm:
            self._must_arrive[partition] += range(first, first + count)
        self.written[partition] += count
        self.source.changed()

    def calm(self) -> None:
        """Nothing is lost from now on."""
        self._is_calm = True

    def replace_topic(self, cluster: MemoryCluster, topic: str) -> None:
        cluster.delete(topic)
        cluster.create(topic, self.shape.partitions)
        if topic == REMOTE:
            self._copied = {at: [] for at in self.written}
        cluster.changed()

    def copied(self, partition: int) -> list[int]:
        """The source's offsets of the target's records, as a reader of committed ones sees them."""
        return [
            offset for offset in places(self.target.log(TopicPartition(REMOTE, partition))) if offset >= 0
        ]

    @property
    def has_positions(self) -> bool:
        """Whether each partition has a stored position."""
        logs = (self.target.log(TopicPartition(POSITIONS, at)) for at in range(2))
        keys = {record.key for log in logs for batch in visible(log) for record in decode_log_batch(batch, 0)}
        return len(keys) == self.shape.partitions

    @property
    def is_complete(self) -> bool:
        return all(self._is_copied(at) for at in self.written)

    def _is_copied(self, partition: int) -> bool:
        copied, due = self.copied(partition), self._must_arrive[partition]
        if self.shape.is_lossy:
            return copied[len(copied) - len(due) :] == due
        return copied == due

    def run_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Whether it held in time."""
        return self.time.run_until(holds, timeout_s)

    # what arrives

    def _target_has(self, partition: TopicPartition, stored: Stored) -> None:
        if self.shape.is_transactional:
            return  # see `check_committed`
        if partition.topic == REMOTE:
            copied = self._copied[partition.partition]
            for offset in (int(record.value or b"-1") for record in decode(stored.data)):
                is_next = offset > max(copied, default=-1) if self.shape.is_lossy else offset == len(copied)
                if not is_next:
                    self._violated(f"{partition}: record {offset} where {len(copied)} belongs")
                copied.append(offset)
        elif partition.topic == POSITIONS and not self.shape.is_lossy:
            for record in _records(stored):
                self._check_position(record)

    def _check_position(self, record: LogRecord) -> None:
        partition = int((record.key or b"").split(b'"partition":')[1].split(b",")[0])
        offset = parse_source_position_value(record.value)
        log = self.target.log(TopicPartition(REMOTE, partition))
        acknowledged = len([place for place in places(log) if place >= 0])
        if offset is not None and offset >= acknowledged:
            self._violated(f"position {offset} of partition {partition} is ahead of {acknowledged} records")

    def _source_has(self, partition: TopicPartition, stored: Stored) -> None:
        if partition.topic != SYNCS or self.shape.is_lossy:
            return
        for record in _records(stored):
            run_sync = parse_offset_sync(record)
            assert run_sync is not None
            sync = run_sync.sync
            log = self.target.log(TopicPartition(REMOTE, sync.topic_partition.partition))
            there = places(log, self.target.transactions.is_committed)
            found = there[sync.downstream_offset] if sync.downstream_offset < len(there) else None
            if found != sync.upstream_offset:
                self._violated(f"{sync}: the target has record {found} there")

    def check_committed(self) -> None:
        """At any time: the committed positions name committed records only."""
        if self.shape.is_lossy:
            return
        for partition in range(2):
            log = self.target.log(TopicPartition(POSITIONS, partition))
            for batch in visible(log):
                for record in decode_log_batch(batch, partition):
                    self._check_position(record)

    def _violated(self, what: str) -> None:
        self.violations.append(f"{self.time.time():.3f}: {what}")


def visible(log: PartitionLog, is_committed: IsCommitted = lambda _: False) -> list[FetchedBatch]:
    """The batches of data that were not aborted, up to the first that is undecided."""
    end, found = log.high_watermark, []
    for producer_id, entry in log.producers.entries.items():
        if entry.transaction_start is not None and not is_committed(producer_id):
            end = min(end, entry.transaction_start)
    for stored in log.batches:
        if stored.base_offset >= end:
            break
        (batch,) = iterate_batches(memoryview(bytearray(stored.data)))
        header = batch.header
        is_aborted = any(
            aborted.producer_id == header.producer_id
            and aborted.first_offset <= header.base_offset <= aborted.last_offset
            for aborted in log.aborted
        )
        if not header.attributes & CONTROL and not is_aborted:
            found.append(batch)
    return found


def places(log: PartitionLog, is_committed: IsCommitted = lambda _: False) -> list[int]:
    """By offset: what the visible record there says of its place in the source, -1 for none."""
    found: list[int] = []
    for batch in visible(log, is_committed):
        found += [-1] * (batch.header.base_offset - len(found))
        found += [int(record.value or b"-1") for record in decode(batch.data)]
    return found


def _records(stored: Stored) -> list[LogRecord]:
    (batch,) = iterate_batches(memoryview(bytearray(stored.data)))
    return list(decode_log_batch(batch, 0))
