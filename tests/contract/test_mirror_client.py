"""The client API against a cluster that holds what mirrors leave there; the vectors are Java's."""

from collections.abc import Iterator
from typing import Final

import pytest

from sparkmirror import MirrorClient
from sparkmirror.client import remote_cluster_utils
from sparkmirror.client.mirror_client import OffsetAndMetadata
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import ConfigError, KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.log_records import LogRecord
from sparkmirror.domain.wire_records import Checkpoint
from sparkmirror.kafka.topic_log import TopicWriter
from tests.contract.copying import connection
from tests.system.mixed_data import create_topic

BETWEEN: Final = "client"
"""Parts aliases and topics: other tests' topics on this cluster have a dot at most."""
SEPARATOR: Final = f"-{BETWEEN}-"
TOPICS: Final = [
    "heartbeats",
    *(
        SEPARATOR.join(parts)
        for parts in (
            ("one", "heartbeats"),
            ("one", "two", "heartbeats"),
            ("three", "heartbeats"),
            ("one", "orders"),
            ("three", "two", "orders"),
            ("one", "checkpoints", "internal"),
            ("three", "checkpoints", "internal"),
        )
    ),
]


def named(*parts: str) -> str:
    return SEPARATOR.join(parts)


@pytest.fixture(scope="module")
def properties(target_cluster: LocalCluster) -> dict[str, str]:
    client = {
        "bootstrap.servers": target_cluster.bootstrap_servers,
        "replication.policy.separator": SEPARATOR,
    }
    with MirrorClient(client) as asked:
        there = asked.heartbeat_topics()
    for topic in TOPICS:
        if topic not in there:
            create_topic(target_cluster.bootstrap_servers, topic)
    writer = TopicWriter(connection(target_cluster))
    checkpoints = [
        Checkpoint(GroupId("billing"), TopicPartition(named("one", "orders"), 0), 5, 7, "old"),
        Checkpoint(GroupId("billing"), TopicPartition(named("one", "orders"), 1), 5, 6),
        Checkpoint(GroupId("shipping"), TopicPartition(named("one", "orders"), 0), 1, 1),
        Checkpoint(GroupId("billing"), TopicPartition(named("one", "orders"), 0), 9, 12, "new"),
    ]
    records = [LogRecord(checkpoint.encode_key(), checkpoint.encode_value()) for checkpoint in checkpoints]
    writer.write(named("one", "checkpoints", "internal"), [LogRecord(b"none", b"of ours"), *records])
    writer.close()
    return client


@pytest.fixture
def client(properties: dict[str, str]) -> Iterator[MirrorClient]:
    with MirrorClient(properties) as made:
        yield made


def test_hops_are_those_of_the_shortest_way(client: MirrorClient) -> None:
    assert [client.replication_hops(alias) for alias in ("one", "two", "three", "four")] == [1, 2, 1, -1]


def test_topics_are_told_by_their_names(client: MirrorClient) -> None:
    assert client.heartbeat_topics() == set(TOPICS[:4])
    assert client.checkpoint_topics() == set(TOPICS[6:])
    assert client.upstream_clusters() == {"one", "two", "three"}
    assert client.remote_topics() == set(TOPICS[1:6])
    assert client.remote_topics("three") == {named("three", "heartbeats"), named("three", "two", "orders")}
    assert client.remote_topics("two") == set()


def test_a_group_goes_on_at_its_last_checkpoints(client: MirrorClient) -> None:
    expected = {
        TopicPartition(named("one", "orders"), 0): OffsetAndMetadata(12, "new"),
        TopicPartition(named("one", "orders"), 1): OffsetAndMetadata(6, ""),
    }
    assert client.remote_consumer_offsets("billing", "one") == expected
    together = client.remote_offsets_of(["billing", "shipping", "nobody"], "one")
    assert [len(together[group]) for group in ("billing", "shipping", "nobody")] == [2, 1, 0]
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        client.remote_consumer_offsets("billing", "four", timeout_s=2)


def test_each_function_is_the_clients_method(properties: dict[str, str], client: MirrorClient) -> None:
    utils = remote_cluster_utils
    assert utils.replication_hops(properties, "two") == 2
    assert utils.heartbeat_topics(properties) == client.heartbeat_topics()
    assert utils.checkpoint_topics(properties) == client.checkpoint_topics()
    assert utils.upstream_clusters(properties) == client.upstream_clusters()
    offsets = client.remote_consumer_offsets("billing", "one")
    assert utils.translate_offsets(properties, "one", "billing") == offsets
    assert utils.translate_offsets_of(properties, "one", ["billing"]) == {"billing": offsets}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "here:1", "replication.policy.class": "a.Policy"}, "a.Policy"),
        ({"bootstrap.servers": "here:1", "security.protocol": "SSL"}, "security.protocol"),
    ],
)
def test_what_can_not_be_used_is_named(told: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MirrorClient(told)


def test_one_client_may_be_told_another_address(properties: dict[str, str]) -> None:
    moved = {
        **properties,
        "bootstrap.servers": "127.0.0.1:1",
        "admin.bootstrap.servers": properties["bootstrap.servers"],
        "consumer.bootstrap.servers": properties["bootstrap.servers"],
    }
    with MirrorClient(moved) as client:
        assert client.replication_hops("one") == 1
        assert client.remote_consumer_offsets("shipping", "one")
