"""The scenario of the hand-over tests: Java mirrors, then sparkmirror, then Java again, under constant load.

Two flows mirror the same topics: one starts with Java in dedicated mode, the other with Java's connectors on
a Connect cluster. sparkmirror continues both in the same ways: with the file of the dedicated mode, and as a
worker of the Connect cluster, which finds the connectors in the topics of Java's worker.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka as confluent

from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.mirror_watch import MirrorWatch
from sparkmirror.view.flows import FlowView
from sparkmirror.view.groups import groups_of
from sparkmirror.view.making import Node, view_of
from tests.support.broker_data import append, create_topic, delete_records, end_offsets, numbered, records
from tests.support.mirror import REPLICATION, Mirror
from tests.support.traffic import FLUSH_TIMEOUT_S, flowing
from tests.support.waiting import await_value
from tests.system.connect_node import ConnectNode
from tests.system.dual_run import Sides
from tests.system.java_mm2 import CONNECTORS, connect_worker, connector_class, dedicated

ORDERS: Final = "handed.orders"
"""A topic of two partitions, the first of which no longer starts at offset 0."""
PAYMENTS: Final = "handed.payments"
"""A topic of one partition, written in transactions, whose markers take offsets."""
PARTITIONS: Final = {ORDERS: 2, PAYMENTS: 1}
GONE: Final = 30
RATE: Final = 200
IN_TRANSACTION: Final = 7
READER: Final = "handed-reader"
"""A group that reads all records of the source all the time."""
STOPPED_GROUP: Final = "handed-stopped"
"""A group that reads a part of ORDERS while sparkmirror runs, and continues on the target."""
DEDICATED: Final = ("ho", "hb")
CONNECT: Final = ("hc", "hd")
FLOWS: Final = (DEDICATED, CONNECT)
"""The aliases of source and target."""
CONNECT_GROUP: Final = "handed"
WAIT_S: Final = 120.0
_TICK_S: Final = 0.1

Offsets = Mapping[TopicPartition, int]

_SETTINGS: Final = {
    "topics": r"handed\..*",
    "groups": "handed-.*",
    "tasks.max": "2",
    "offset.lag.max": "50",
    "heartbeats.replication.enabled": "false",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.acls.enabled": "false",
}
"""Settings of the connectors in both modes."""
_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Both clusters after all three runs, when no mirror runs."""

    sides: Sides
    by_java: Mapping[str, int]
    """Numbers of checkpoints by the flow's source alias after Java's first run."""
    by_sparkmirror: Mapping[str, int]
    """The same numbers after the run of sparkmirror."""
    watched: FlowView
    """The view that `sparkmirror watch` had of Java's first run in dedicated mode."""
    file: Path
    """The mm2.properties of the dedicated mode."""
    stopped_at: Offsets
    """Offsets that STOPPED_GROUP had committed on the source."""


def hand_over(sides: Sides, folder: Path) -> HandedOver:
    create_topic(sides.source.bootstrap_servers, ORDERS, partitions=PARTITIONS[ORDERS])
    create_topic(sides.source.bootstrap_servers, PAYMENTS, partitions=PARTITIONS[PAYMENTS])
    append(sides.source, ORDERS, numbered(GONE))
    delete_records(sides.source, ORDERS, GONE)
    sparkmirror = Mirror(folder / "sparkmirror", mm2_properties(sides))
    node = ConnectNode(folder / "node", worker_properties(sides.target))
    with closing(sparkmirror), closing(node), reading(sides.source, READER) as reader, ExitStack() as traffic:
        traffic.enter_context(flowing(sides.source, ORDERS, rate=RATE, partitions=PARTITIONS[ORDERS]))
        traffic.enter_context(writing_transactions(sides.source))
        with java(sides, folder, sparkmirror.file, configure=True):
            await_mirrored_and_read(sides)
            watched = watched_from_outside(sparkmirror.file)
        by_java = checkpoint_counts(sides)
        before_ours = source_ends(sides)
        sparkmirror.start()
        node.start()
        await_mirrored_and_read(sides)
        stopped_at = commit_between(sides.source, before_ours, reader.committed())
        await_exact_offsets(sides, stopped_at)
        sparkmirror.stop()
        node.stop()
        by_sparkmirror = checkpoint_counts(sides)
        with java(sides, folder, sparkmirror.file, configure=False):
            await_mirrored_and_read(sides)
            traffic.close()
            await_reader_at_end(sides)
    return HandedOver(sides, by_java, by_sparkmirror, watched, sparkmirror.file, stopped_at)


def watched_from_outside(file: Path) -> FlowView:
    """Watch the file's only flow until it and its groups were looked at."""
    flows = mirroring_flows(file, read_mirror_maker_file(file).flows)
    watch = MirrorWatch([(flow.settings, flow.connector) for flow in flows])
    watch.start()

    def looked() -> FlowView | None:
        (view,) = view_of(Node("here", "1"), watch.looks(), time.time()).flows
        groups = groups_of(view)
        return view if watch.is_started and groups is not None and groups.names else None

    try:
        return await_value(looked, WAIT_S, lambda: str(watch.looks()))
    finally:
        watch.stop()


# mirrors


@contextmanager
def java(sides: Sides, folder: Path, file: Path, *, configure: bool) -> Iterator[None]:
    """Run Java's MM2 in both modes and stop it in order after the block. Connectors stay configured."""
    connect = worker_properties(sides.target)
    with (
        dedicated(file, folder / "dedicated.log", "--clusters", DEDICATED[1]) as mirror_maker,
        connect_worker(folder, connect) as worker,
    ):
        if configure:
            for connector in CONNECTORS:
                worker.put(connector_name(connector), connector_config(sides, connector))
        yield
        worker.terminate()
        mirror_maker.stop()
        worker.stop()


def mm2_properties(sides: Sides) -> dict[str, str]:
    source, target = (cluster.bootstrap_servers for cluster in sides)
    here, there = DEDICATED
    return {
        **REPLICATION,
        **{f"{store}.storage.replication.factor": "1" for store in ("config", "status")},
        **_SETTINGS,
        "clusters": f"{here}, {there}",
        f"{here}.bootstrap.servers": source,
        f"{there}.bootstrap.servers": target,
        f"{there}.offset.flush.interval.ms": "1000",
        f"{here}->{there}.enabled": "true",
        f"{here}->{there}.emit.heartbeats.enabled": "true",
    }


def worker_properties(target: LocalCluster) -> dict[str, str]:
    stores = {
        f"{store}.storage.{key}": value
        for store in ("offset", "config", "status")
        for key, value in (("topic", f"{CONNECT_GROUP}-{store}s"), ("replication.factor", "1"))
    }
    return {
        "bootstrap.servers": target.bootstrap_servers,
        "group.id": CONNECT_GROUP,
        "offset.flush.interval.ms": "1000",
        # On a busy machine Java's tasks would end without their last positions, and records come twice.
        "offset.flush.timeout.ms": "60000",
        "task.shutdown.graceful.timeout.ms": "60000",
        **{f"{what}.converter": _CONVERTER for what in ("key", "value", "header")},
        **stores,
    }


def connector_config(sides: Sides, connector: str) -> dict[str, str]:
    here, there = CONNECT
    return {
        "connector.class": connector_class(connector),
        "source.cluster.alias": here,
        "target.cluster.alias": there,
        "source.cluster.bootstrap.servers": sides.source.bootstrap_servers,
        "target.cluster.bootstrap.servers": sides.target.bootstrap_servers,
        **REPLICATION,
        **_SETTINGS,
    }


def connector_name(connector: str) -> str:
    """Return the connector's name on the Connect cluster."""
    return f"{CONNECT_GROUP}-{connector}"


# load


@contextmanager
def writing_transactions(cluster: LocalCluster) -> Iterator[None]:
    """Write ten transactions of IN_TRANSACTION records per second until the end of the block."""
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": PAYMENTS, "log_level": 0}
    )
    producer.init_transactions(FLUSH_TIMEOUT_S)

    def write_transaction(turn: int) -> None:
        producer.begin_transaction()
        for key, value in numbered(IN_TRANSACTION, turn * IN_TRANSACTION):
            producer.produce(PAYMENTS, value, key)
        producer.commit_transaction(FLUSH_TIMEOUT_S)

    with repeated(write_transaction):
        yield


class Reader:
    """A group member that another thread can ask for its committed offsets."""

    def __init__(self, cluster: LocalCluster, group: str, topics: Sequence[str]) -> None:
        self._consumer = confluent.Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.subscribe(list(topics))
        self._committed: Offsets = {}

    def read(self, _: int = 0) -> list[confluent.Message]:
        """Read the available records and commit their offsets."""
        messages = self._consumer.consume(10_000, _TICK_S)
        assert not [message.error() for message in messages if message.error()]
        if messages:
            done = self._consumer.commit(asynchronous=False) or []
            self._committed = {
                **self._committed,
                **{TopicPartition(each.topic, each.partition): each.offset for each in done},
            }
        return messages

    def committed(self) -> Offsets:
        return self._committed

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def reading(cluster: LocalCluster, group: str) -> Iterator[Reader]:
    """Run a group of one member that reads until the end of the block."""
    with closing(Reader(cluster, group, list(PARTITIONS))) as reader, repeated(reader.read):
        yield reader


@contextmanager
def repeated(turn: Callable[[int], object]) -> Iterator[None]:
    """Call `turn` in a thread, ten times per second at most, until the end of the block; raises its error."""
    stopped = threading.Event()

    def turns() -> None:
        number = 0
        while not stopped.wait(_TICK_S):
            turn(number)
            number += 1

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(turns)
        try:
            yield
        finally:
            stopped.set()
        running.result()


def commit_between(source: LocalCluster, after: Offsets, before: Offsets) -> Offsets:
    """Let STOPPED_GROUP commit offsets of ORDERS in the middle between `after` and `before`."""
    stopped_at = {
        partition: (after[partition] + offset) // 2
        for partition, offset in before.items()
        if partition.topic == ORDERS
    }
    consumer = confluent.Consumer({"bootstrap.servers": source.bootstrap_servers, "group.id": STOPPED_GROUP})
    with closing(consumer):
        positions = [confluent.TopicPartition(*partition, offset) for partition, offset in stopped_at.items()]
        consumer.commit(offsets=positions, asynchronous=False)
    return stopped_at


# state of the clusters


def remote(alias: str, partition: TopicPartition) -> TopicPartition:
    return TopicPartition(f"{alias}.{partition.topic}", partition.partition)


def source_ends(sides: Sides) -> Offsets:
    return end_offsets(sides.source, PARTITIONS)


def checkpoints(sides: Sides, alias: str) -> list[Checkpoint]:
    """Read every checkpoint ever written: the active segment is not compacted."""
    found = records(sides.target, f"{alias}.checkpoints.internal")
    return [Checkpoint.decode(record.key() or b"", record.value() or b"") for record in found]


def checkpoint_counts(sides: Sides) -> dict[str, int]:
    return {alias: len(checkpoints(sides, alias)) for alias, _ in FLOWS}


def committed(cluster: LocalCluster, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """Read committed offsets, negative where the group has none."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0}
    with closing(confluent.Consumer(settings)) as consumer:
        asked = [confluent.TopicPartition(*partition) for partition in partitions]
        found = consumer.committed(asked, timeout=WAIT_S)
    return {TopicPartition(each.topic, each.partition): each.offset for each in found}


def await_mirrored_and_read(sides: Sides) -> None:
    """Wait until READER's checkpoints include all records that the source has now."""
    ends = source_ends(sides)

    def behind() -> list[str]:
        left = []
        for alias, _ in FLOWS:
            upstream = {
                checkpoint.topic_partition: checkpoint.upstream_offset
                for checkpoint in checkpoints(sides, alias)
                if checkpoint.group == READER
            }
            left += [
                f"{remote(alias, partition)}: {upstream.get(remote(alias, partition))} of {end}"
                for partition, end in ends.items()
                if upstream.get(remote(alias, partition), -1) < end
            ]
        return left

    await_value(lambda: not behind(), WAIT_S, lambda: ", ".join(behind()))


def await_exact_offsets(sides: Sides, stopped_at: Offsets) -> None:
    """Wait until STOPPED_GROUP's offsets on the target are those of its next records, for both flows.

    Offsets translated by offset syncs come first; those that are looked up in the logs follow.
    """
    next_values = values_at(sides.source, stopped_at)

    def away() -> list[str]:
        left = []
        for alias, _ in FLOWS:
            there = committed(
                sides.target, STOPPED_GROUP, [remote(alias, partition) for partition in stopped_at]
            )
            if min(there.values()) < 0 or values_at(sides.target, there) != next_values:
                left.append(f"{alias}: {there}")
        return left

    await_value(lambda: not away(), WAIT_S, lambda: f"{STOPPED_GROUP} is not at {next_values} but {away()}")


def values_at(cluster: LocalCluster, positions: Offsets) -> list[bytes | None]:
    """Read the value of the record at each position, in the given order."""
    values = []
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "values", "log_level": 0}
    with closing(confluent.Consumer(settings)) as consumer:
        for partition, offset in positions.items():
            consumer.assign([confluent.TopicPartition(*partition, offset)])
            message = consumer.poll(WAIT_S)
            assert message is not None, f"nothing at {partition}: {offset}"
            assert message.error() is None, message.error()
            values.append(message.value())
    return values


def await_reader_at_end(sides: Sides) -> None:
    """Wait until READER's offsets on the target are the end offsets there, after the load has ended."""
    names = [f"{alias}.{topic}" for alias, _ in FLOWS for topic in PARTITIONS]

    def behind() -> list[str]:
        ends = end_offsets(sides.target, names)
        there = committed(sides.target, READER, list(ends))
        return [
            f"{partition}: {there[partition]} of {end}"
            for partition, end in ends.items()
            if there[partition] != end
        ]

    await_value(lambda: not behind(), WAIT_S, lambda: ", ".join(behind()))
