"""The scenario of the hand-over tests: Java mirrors, then ours, then Java again; records and a group go on.

Two flows mirror the same topics: one begins with Java in dedicated mode, the other with Java's connectors on
a Connect cluster. Ours goes on with both, in the same ways: with the file that the dedicated mode was given,
and as a worker of the Connect cluster, which finds its connectors where Java's worker left them.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka as confluent

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.wire_records import Checkpoint
from tests.support.broker_data import append, create_topic, delete_records, end_offsets, numbered, records
from tests.support.mirror import REPLICATION, Mirror
from tests.support.traffic import FLUSH_TIMEOUT_S, flowing
from tests.support.waiting import await_value
from tests.system.connect_node import ConnectNode
from tests.system.dual_run import Sides
from tests.system.java_mm2 import CONNECTORS, connect_worker, connector_class, dedicated

ORDERS: Final = "handed.orders"
"""Two partitions; the first one does not begin at offset 0 any more."""
PAYMENTS: Final = "handed.payments"
"""One partition, written in transactions, whose ends have offsets too."""
PARTITIONS: Final = {ORDERS: 2, PAYMENTS: 1}
GONE: Final = 30
RATE: Final = 200
IN_TRANSACTION: Final = 7
READER: Final = "handed-reader"
"""Reads everything on the source all the time."""
PARKED: Final = "handed-parked"
"""Reads a part of ORDERS while ours runs, and comes back on the target."""
DEDICATED: Final = ("ho", "hb")
CONNECT: Final = ("hc", "hd")
FLOWS: Final = (DEDICATED, CONNECT)
"""Aliases: the source's, the target's."""
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
"""Of the connectors, wherever they run."""
_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Both clusters after three lives, when nothing runs any more."""

    sides: Sides
    by_java: Mapping[str, int]
    """How many checkpoints each flow, by its source's alias, had when Java was first stopped, …"""
    by_ours: Mapping[str, int]
    """… and when ours was."""
    parked: Offsets
    """What PARKED had committed on the source."""


def hand_over(sides: Sides, folder: Path) -> HandedOver:
    create_topic(sides.source.bootstrap_servers, ORDERS, partitions=PARTITIONS[ORDERS])
    create_topic(sides.source.bootstrap_servers, PAYMENTS, partitions=PARTITIONS[PAYMENTS])
    append(sides.source, ORDERS, numbered(GONE))
    delete_records(sides.source, ORDERS, GONE)
    ours = Mirror(folder / "ours", mm2_properties(sides))
    node = ConnectNode(folder / "node", worker_properties(sides.target))
    with closing(ours), closing(node), reading(sides.source, READER) as reader, ExitStack() as traffic:
        traffic.enter_context(flowing(sides.source, ORDERS, rate=RATE, partitions=PARTITIONS[ORDERS]))
        traffic.enter_context(paying(sides.source))
        with java(sides, folder, ours.file, configure=True):
            await_overtaken(sides)
        by_java = checkpoint_counts(sides)
        before_ours = source_ends(sides)
        ours.start()
        node.start()
        await_overtaken(sides)
        parked = park(sides.source, before_ours, reader.committed())
        await_parked(sides, parked)
        ours.stop()
        node.stop()
        by_ours = checkpoint_counts(sides)
        with java(sides, folder, ours.file, configure=False):
            await_overtaken(sides)
            traffic.close()
            await_reader_at_end(sides)
    return HandedOver(sides, by_java, by_ours, parked)


# what runs


@contextmanager
def java(sides: Sides, folder: Path, file: Path, *, configure: bool) -> Iterator[None]:
    """Both of Java's ways, stopped in order after the block; the Connect cluster remembers its connectors."""
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
    """As somebody called it on the Connect cluster."""
    return f"{CONNECT_GROUP}-{connector}"


# what goes on meanwhile


@contextmanager
def paying(cluster: LocalCluster) -> Iterator[None]:
    """Ten transactions of IN_TRANSACTION records a second, until the end of the block."""
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": PAYMENTS, "log_level": 0}
    )
    producer.init_transactions(FLUSH_TIMEOUT_S)

    def pay(turn: int) -> None:
        producer.begin_transaction()
        for key, value in numbered(IN_TRANSACTION, turn * IN_TRANSACTION):
            producer.produce(PAYMENTS, value, key)
        producer.commit_transaction(FLUSH_TIMEOUT_S)

    with repeated(pay):
        yield


class Reader:
    """A member of a group; `committed` is for others to look at."""

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
        """What there is, committed."""
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
    """A group of one member that reads until the end of the block."""
    with closing(Reader(cluster, group, list(PARTITIONS))) as reader, repeated(reader.read):
        yield reader


@contextmanager
def repeated(turn: Callable[[int], object]) -> Iterator[None]:
    """In a thread, ten times a second at most, until the end of the block, which fails if a turn did."""
    enough = threading.Event()

    def turns() -> None:
        number = 0
        while not enough.wait(_TICK_S):
            turn(number)
            number += 1

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(turns)
        try:
            yield
        finally:
            enough.set()
        running.result()


def park(source: LocalCluster, after: Offsets, before: Offsets) -> Offsets:
    """Let PARKED commit offsets of ORDERS between those two."""
    parked = {
        partition: (after[partition] + offset) // 2
        for partition, offset in before.items()
        if partition.topic == ORDERS
    }
    consumer = confluent.Consumer({"bootstrap.servers": source.bootstrap_servers, "group.id": PARKED})
    with closing(consumer):
        positions = [confluent.TopicPartition(*partition, offset) for partition, offset in parked.items()]
        consumer.commit(offsets=positions, asynchronous=False)
    return parked


# what there is to see


def remote(alias: str, partition: TopicPartition) -> TopicPartition:
    return TopicPartition(f"{alias}.{partition.topic}", partition.partition)


def source_ends(sides: Sides) -> Offsets:
    return end_offsets(sides.source, PARTITIONS)


def checkpoints(sides: Sides, alias: str) -> list[Checkpoint]:
    """All that were ever written: nothing is compacted in the segment that is written to."""
    found = records(sides.target, f"{alias}.checkpoints.internal")
    return [Checkpoint.decode(record.key() or b"", record.value() or b"") for record in found]


def checkpoint_counts(sides: Sides) -> dict[str, int]:
    return {alias: len(checkpoints(sides, alias)) for alias, _ in FLOWS}


def committed(cluster: LocalCluster, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """Negative where the group has no offset."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0}
    with closing(confluent.Consumer(settings)) as consumer:
        asked = [confluent.TopicPartition(*partition) for partition in partitions]
        told = consumer.committed(asked, timeout=WAIT_S)
    return {TopicPartition(each.topic, each.partition): each.offset for each in told}


def await_overtaken(sides: Sides) -> None:
    """Until the checkpoints of READER say that all is mirrored, and read, that is on the source now."""
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


def await_parked(sides: Sides, parked: Offsets) -> None:
    """Until PARKED is at its very next records on the target, from both flows.

    What syncs tell comes first; what takes looking into logs follows a moment later.
    """
    next_values = values_at(sides.source, parked)

    def away() -> list[str]:
        left = []
        for alias, _ in FLOWS:
            there = committed(sides.target, PARKED, [remote(alias, partition) for partition in parked])
            if min(there.values()) < 0 or values_at(sides.target, there) != next_values:
                left.append(f"{alias}: {there}")
        return left

    await_value(lambda: not away(), WAIT_S, lambda: f"{PARKED} is not at {next_values} but {away()}")


def values_at(cluster: LocalCluster, positions: Offsets) -> list[bytes | None]:
    """Of the first record at each offset, in the order given."""
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
    """Until READER's offsets on the target are where its topics end there; nobody writes any more."""
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
