"""Checks whole flows from and to brokers of older Kafkas, to and from a current one.

No part of `make test`: each release is 60 MB from Maven Central, once, and half a minute.
`OLD_BROKERS=1 python -m pytest tests/old_brokers/check_old_brokers.py`, with `-k 2.8.2` for one of them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
from tests.old_brokers.old_cluster import NEEDS_JARS, RELEASES, Release, old_cluster
from tests.support.acls import acls, create_acls
from tests.support.broker_data import admin, append, config, configure, create_topic, keyed, numbered, topics
from tests.support.mirror import Mirror, running_mirror
from tests.support.waiting import await_value

pytestmark = NEEDS_JARS

WAIT_S: Final = 60.0
ORDERS: Final = "orders"
NEWER: Final = "newer"
NEW_CONFIG: Final = "compression.gzip.level"
"""A config of Kafka 3.8 and newer."""
COMMITTED: Final = 150
FIRST_WITH_INCREMENTAL: Final = (2, 3)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    spec = ClusterSpec("new", settings=settings, heap_mb=256)
    with LocalCluster.start(spec, tmp_path_factory.mktemp("new")) as cluster:
        yield cluster


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_both_ways(release: Release, new: LocalCluster, tmp_path: Path) -> None:
    alias = f"old{release.version.replace('.', '')}"
    there = f"for-{alias}"
    with old_cluster(release, tmp_path / "old") as started:
        old = cast("LocalCluster", started)  # its users need its address only
        write(old, f"then.{ORDERS}", "then-group")
        write(new, f"{there}.{ORDERS}", f"{there}-group")
        newer = {NEW_CONFIG: "5", "retention.ms": "77777777"}
        create_topic(new.bootstrap_servers, f"{there}.{NEWER}", config=newer)
        with running_mirror(tmp_path / "mirror", properties(old, new, alias)) as mirror:
            await_copy(mirror, new, f"{alias}.then.{ORDERS}", "then-group")
            await_copy(mirror, old, f"now.{there}.{ORDERS}", f"{there}-group")
            await_value(lambda: f"now.{there}.{NEWER}" in topics(old), WAIT_S, mirror.log_text)
            assert config(old, f"now.{there}.{NEWER}")["retention.ms"] == "77777777"
            configs_follow(mirror, release, new, old, f"{there}.{ORDERS}")
            mirror.stop()


def properties(old: LocalCluster, new: LocalCluster, alias: str) -> dict[str, str]:
    every_second = ("refresh.topics", "refresh.groups", "sync.topic.configs", "sync.topic.acls")
    return {
        "clusters": f"{alias}, now",
        f"{alias}.bootstrap.servers": old.bootstrap_servers,
        "now.bootstrap.servers": new.bootstrap_servers,
        f"{alias}->now.enabled": "true",
        f"{alias}->now.topics": r"then\..*",
        f"now->{alias}.enabled": "true",
        f"now->{alias}.topics": rf"for-{alias}\..*",
        **{
            f"{job}.interval.seconds": "1"
            for job in (*every_second, "emit.checkpoints", "sync.group.offsets")
        },
        "sync.group.offsets.enabled": "true",
    }


def write(cluster: LocalCluster, topic: str, group: str) -> None:
    create_topic(cluster.bootstrap_servers, topic, partitions=2, config={"retention.ms": "86400001"})
    append(cluster, topic, numbered(200), settings={"compression.type": "lz4"})
    append(cluster, topic, numbered(50), partition=1)
    create_acls(cluster, [("TOPIC", "LITERAL", topic, "User:alice", "*", "ALL", "ALLOW")])
    consumer = confluent.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0}
    )
    consumer.commit(offsets=[confluent.TopicPartition(topic, 0, COMMITTED)], asynchronous=False)
    consumer.close()


def await_copy(mirror: Mirror, cluster: LocalCluster, topic: str, group: str) -> None:
    def log() -> str:
        return f"{topic}: {topics(cluster).get(topic)} partitions\n{mirror.log_text()}"

    await_value(lambda: topics(cluster).get(topic) == 2 and len(keyed(cluster, topic)) == 250, WAIT_S, log)
    assert sorted(keyed(cluster, topic)) == sorted([*numbered(200), *numbered(50)])
    assert config(cluster, topic)["retention.ms"] == "86400001"
    read = ("TOPIC", "LITERAL", topic, "User:alice", "*", "READ", "ALLOW")
    await_value(lambda: read in acls(cluster), WAIT_S, log)
    await_value(lambda: committed(cluster, group, topic) == COMMITTED, WAIT_S, log)


def committed(cluster: LocalCluster, group: str, topic: str) -> int | None:
    client = admin(cluster)
    asked = confluent.ConsumerGroupTopicPartitions(group, [confluent.TopicPartition(topic, 0)])
    (future,) = client.list_consumer_group_offsets([asked]).values()
    (found,) = future.result(WAIT_S).topic_partitions
    return int(found.offset)


def configs_follow(
    mirror: Mirror, release: Release, new: LocalCluster, old: LocalCluster, topic: str
) -> None:
    copy = f"now.{topic}"
    configure(new, topic, {"retention.ms": "55555555", NEW_CONFIG: "4"})
    if tuple(map(int, release.version.split(".")[:2])) < FIRST_WITH_INCREMENTAL:
        mirror.await_log(r"the target cluster '.*' is not compatible with IncrementalAlterConfigs API")
    else:
        await_value(lambda: config(old, copy)["retention.ms"] == "55555555", WAIT_S, mirror.log_text)
    mirror.await_log(f"does not know the config {NEW_CONFIG}, so .*{copy}")
