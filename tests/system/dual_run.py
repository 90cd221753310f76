"""The scenario that most system tests share: data, a mirror of several flows, and two runs of it.

Every flow reads the same source under an alias of its own, so that one process carries many settings.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, keyed, latest, numbered
from tests.support.mirror import Mirror
from tests.support.mixed_data import WRITERS, write_codecs, write_log_append_time
from tests.support.progress import await_caught_up

MIXED: Final = tuple(f"mixed.{kind}" for kind in WRITERS)
TO_APPEND_TIME: Final = "mixed.to-append-time"
APPEND_TIME_BOTH: Final = "mixed.append-time-both"
BIG_BATCH: Final = "mixed.big-batch"
COMMITTED: Final = ("mixed.transactions", "mixed.codecs", "mixed.headers-and-nulls", "mixed.compacted")
LIVE: Final = "live.orders"
"""Mirrored by the same flow as COMMITTED, and empty until a test writes to it."""
SLOW: Final = "paced.orders"
SLOW_PARTITIONS: Final = 2
SLOW_FETCH_BYTES: Final = 50_000
SLOW_LIMIT: Final = 200_000
"""An empty topic, the bytes of a fetch per partition, and the flow's rate limit in bytes per second."""
TUNED: Final = ("client.codecs", "client.large-records", "client.acks")
LATE: Final = "late.records"
SHOP: Final = "shop.orders"

RESUMED_AT: Final = {0: 300, 1: 450}
"""Offsets inside the batches of `BIG_BATCH`, stored as positions before the first run."""


class Sides(NamedTuple):
    source: LocalCluster
    target: LocalCluster


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Two clusters and the mirror between them, which has caught up in its second run."""

    sides: Sides
    mirror: Mirror
    first_run: "FirstRun"


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The state after the first run had stopped."""

    ends: Mapping[TopicPartition, int]
    positions: Mapping[bytes | None, bytes | None]
    log: str

    @classmethod
    def ended(cls, sides: Sides, log: str) -> "FirstRun":
        ends = end_offsets(sides.source, (*MIXED, TO_APPEND_TIME, APPEND_TIME_BOTH))
        return cls(ends, latest(sides.target, "mm2-offsets.A.internal"), log)


def properties(sides: Sides, slow_limit: int = SLOW_LIMIT) -> dict[str, str]:
    """Return the configuration of all flows; `slow_limit` is in bytes per second."""
    source, target = (cluster.bootstrap_servers for cluster in sides)
    return {
        "clusters": "A, B, rc, tuned, late, slow",
        "B.bootstrap.servers": target,
        **{f"{alias}.bootstrap.servers": source for alias in ("A", "rc", "tuned", "late", "slow")},
        "refresh.topics.interval.seconds": "1",
        "sync.topic.configs.interval.seconds": "1",
        **_there_and_back(),
        **_committed(),
        **_tuned(),
        **_late(),
        **_slow(slow_limit),
    }


def _there_and_back() -> dict[str, str]:
    return {
        "A->B.enabled": "true",
        "A->B.topics": r"mixed\..*, new\..*, .*shop\.orders",
        "A->B.topics.exclude": r"new\.secret.*, .*\.replica",
        "A->B.tasks.max": "3",
        "A->B.emit.heartbeats.enabled": "true",
        "B->A.enabled": "true",
        "B->A.topics": r".*shop\.orders",
        "B->A.emit.heartbeats.enabled": "true",
    }


def _committed() -> dict[str, str]:
    return {
        "rc->B.enabled": "true",
        "rc->B.topics": ", ".join([*COMMITTED, LIVE]),
        "rc->B.replication.policy.separator": "_",
        "rc->B.offset-syncs.topic.location": "target",
        "rc.consumer.isolation.level": "read_committed",
    }


def _tuned() -> dict[str, str]:
    return {
        "tuned->B.enabled": "true",
        "tuned->B.topics": r"client\..*",
        "tuned->B.heartbeats.replication.enabled": "false",
        "tuned->B.producer.override.compression.type": "zstd",
        "tuned->B.producer.override.acks": "1",
        "tuned.consumer.max.partition.fetch.bytes": "1000",
    }


def _late() -> dict[str, str]:
    return {
        "late->B.enabled": "true",
        "late->B.topics": LATE,
        "late->B.heartbeats.replication.enabled": "false",
        "late->B.replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "late.consumer.auto.offset.reset": "latest",
        "late.consumer.fetch.min.bytes": "1000000",
        "late.consumer.fetch.max.wait.ms": "2000",
    }


def _slow(limit: int) -> dict[str, str]:
    return {
        "slow->B.enabled": "true",
        "slow->B.topics": SLOW,
        "slow->B.heartbeats.replication.enabled": "false",
        "slow->B.max.bytes.per.second": str(limit),
        "slow.consumer.max.partition.fetch.bytes": str(SLOW_FETCH_BYTES),
    }


def write_data(sides: Sides) -> None:
    """Write all data of the first run, concurrently, because most of the time is spent waiting."""
    source = sides.source.bootstrap_servers
    with ThreadPoolExecutor(max_workers=len(WRITERS)) as threads:
        written = [threads.submit(write, source, f"mixed.{kind}") for kind, write in WRITERS.items()]
        written += [
            threads.submit(write_codecs, source, TO_APPEND_TIME),
            threads.submit(write_log_append_time, source, APPEND_TIME_BOTH),
            threads.submit(WRITERS["codecs"], source, "client.codecs"),
            threads.submit(WRITERS["large-records"], source, "client.large-records"),
            threads.submit(_write_small, sides),
        ]
        for each in written:
            each.result()


def _write_small(sides: Sides) -> None:
    source, target = (cluster.bootstrap_servers for cluster in sides)
    for topic in (TO_APPEND_TIME, APPEND_TIME_BOTH):
        create_topic(target, f"A.{topic}", partitions=3, config={"message.timestamp.type": "LogAppendTime"})
    create_topic(source, LIVE)
    create_topic(source, SLOW, partitions=SLOW_PARTITIONS)
    create_topic(source, "client.acks")
    create_topic(target, "tuned.client.acks", config={"min.insync.replicas": "2"})
    append(sides.source, "client.acks", numbered(10))
    create_topic(source, LATE)
    append(sides.source, LATE, numbered(10))
    for side in sides:
        create_topic(side.bootstrap_servers, SHOP)
        append(side, SHOP, [(b"from", side.spec.name.encode())])
    _store_positions(sides)


def _store_positions(sides: Sides) -> None:
    """Store positions as MM2 does in its offsets topic."""
    topic = "mm2-offsets.A.internal"
    create_topic(sides.target.bootstrap_servers, topic, partitions=25, config={"cleanup.policy": "compact"})
    stored = [
        (position_key(TopicPartition(BIG_BATCH, partition)), b'{"offset":%d}' % (offset - 1))
        for partition, offset in RESUMED_AT.items()
    ]
    append(sides.target, topic, stored, partition=-1, settings={"partitioner": "murmur2"})


def position_key(partition: TopicPartition, alias: str = "A") -> bytes:
    """Encode the key as Jackson does: no spaces, the fields in the order of Java's hash map."""
    fields = {"cluster": alias, "partition": partition.partition, "topic": partition.topic}
    return json.dumps(["MirrorSourceConnector", fields], separators=(",", ":")).encode()


def write_more_data(sides: Sides) -> None:
    """Write the data that the mirror finds at its second start."""
    for topic in ("mixed.codecs", "mixed.transactions", BIG_BATCH, TO_APPEND_TIME):
        for partition in range(2):
            append(sides.source, topic, numbered(70), partition=partition)
    append(sides.source, SHOP, [(b"from", b"source again")])


def await_all_caught_up(sides: Sides) -> None:
    source, target = sides
    await_caught_up(source, target, "A", (*MIXED, TO_APPEND_TIME, APPEND_TIME_BOTH, SHOP))
    await_caught_up(source, target, "rc", COMMITTED)
    await_caught_up(source, target, "tuned", TUNED)
    await_caught_up(source, target, "late", [LATE])
    await_caught_up(target, source, "B", [SHOP])


def values(cluster: LocalCluster, topic: str) -> list[bytes | None]:
    return [value for _, value in keyed(cluster, topic)]
