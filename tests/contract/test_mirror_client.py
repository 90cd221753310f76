"""The client API against a cluster with a mirror's topics and checkpoints; vectors of MirrorClientTest."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sparkmirror import MirrorClient
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.cli.main import main
from sparkmirror.client import remote_cluster_utils
from sparkmirror.client.mirror_client import OffsetAndMetadata
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import ConfigError, KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from tests.support.broker_data import create_topic
from tests.support.connections import connection

BETWEEN: Final = "client"
"""Separates aliases and topics; topics of other tests on this cluster have dots at most."""
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


def test_replication_hops_count_the_shortest_path(client: MirrorClient) -> None:
    assert [client.replication_hops(alias) for alias in ("one", "two", "three", "four")] == [1, 2, 1, -1]


def test_remote_topics_are_recognized_by_name(client: MirrorClient) -> None:
    assert client.heartbeat_topics() == set(TOPICS[:4])
    assert client.checkpoint_topics() == set(TOPICS[6:])
    assert client.upstream_clusters() == {"one", "two", "three"}
    assert client.remote_topics() == set(TOPICS[1:6])
    assert client.remote_topics("three") == {named("three", "heartbeats"), named("three", "two", "orders")}
    assert client.remote_topics("two") == set()


def test_group_continues_at_its_last_checkpoints(client: MirrorClient) -> None:
    expected = {
        TopicPartition(named("one", "orders"), 0): OffsetAndMetadata(12, "new"),
        TopicPartition(named("one", "orders"), 1): OffsetAndMetadata(6, ""),
    }
    assert client.remote_consumer_offsets("billing", "one") == expected
    together = client.remote_offsets_of(["billing", "shipping", "nobody"], "one")
    assert [len(together[group]) for group in ("billing", "shipping", "nobody")] == [2, 1, 0]
    assert client.remote_offsets_of(re.compile("b.*|ship"), "one") == {"billing": expected}
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        client.remote_consumer_offsets("billing", "four", timeout_s=2)


def test_each_module_function_returns_the_result_of_the_client_method(
    properties: dict[str, str], client: MirrorClient
) -> None:
    utils = remote_cluster_utils
    assert utils.replication_hops(properties, "two") == 2
    assert utils.heartbeat_topics(properties) == client.heartbeat_topics()
    assert utils.checkpoint_topics(properties) == client.checkpoint_topics()
    assert utils.upstream_clusters(properties) == client.upstream_clusters()
    offsets = client.remote_consumer_offsets("billing", "one")
    assert utils.translate_offsets(properties, "one", "billing") == offsets
    assert utils.translate_offsets_of(properties, "one", ["billing"]) == {"billing": offsets}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "here:1", "replication.policy.class": "a.Policy"}, "a.Policy"),
        ({"bootstrap.servers": "here:1", "security.protocol": "SASL_SSL"}, "sasl.mechanism"),
    ],
)
def test_error_names_the_invalid_setting(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MirrorClient(settings)


def test_prefixed_client_settings_override_the_address(properties: dict[str, str]) -> None:
    moved = {
        **properties,
        "bootstrap.servers": "127.0.0.1:1",
        "admin.bootstrap.servers": properties["bootstrap.servers"],
        "consumer.bootstrap.servers": properties["bootstrap.servers"],
    }
    with MirrorClient(moved) as client:
        assert client.replication_hops("one") == 1
        assert client.remote_consumer_offsets("shipping", "one")


def test_the_command_prints_what_the_client_finds(
    properties: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(f"replication.policy.separator={SEPARATOR}")
    cluster = ["--bootstrap-server", properties["bootstrap.servers"], "--command-config", str(config)]
    asked = ["translate-offsets", *cluster, "--source", "one"]
    assert main([*asked, "--group", "billing", "--group", "nobody"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "billing  one-client-orders-0  12\nbilling  one-client-orders-1  6\n"
    assert printed.err == "sparkmirror: group nobody has no checkpoint from one\n"
    assert main([*asked, "--group", "shipping", "-o", "json"]) == 0
    shipping = {
        "group": "shipping",
        "topic": "one-client-orders",
        "partition": 0,
        "offset": 1,
        "metadata": "",
    }
    assert json.loads(capsys.readouterr().out) == [shipping]
    assert main([*asked, "--group", "nobody"]) == 1
    capsys.readouterr()
    assert main(["topics", *cluster, "--source", "three"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "three-client-heartbeats  three  heartbeats  three",
        "three-client-two-client-orders  three  two-client-orders  three two",
    ]
    assert main(["checkpoints", *cluster, "--source", "one"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == (
        "Checkpoint{consumerGroupId=billing, topicPartition=one-client-orders-0, upstreamOffset=9, "
        "downstreamOffset=12, metadata=new}"
    )


def test_offset_syncs_are_printed(target_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    create_topic(target_cluster.bootstrap_servers, "mm2-offset-syncs.printed.internal")
    sync = OffsetSync(TopicPartition("orders", 2), 5, 7)
    writer = TopicWriter(connection(target_cluster))
    writer.write("mm2-offset-syncs.printed.internal", [LogRecord(sync.encode_key(), sync.encode_value())])
    writer.close()
    cluster = ["--bootstrap-server", target_cluster.bootstrap_servers, "-o", "json"]
    assert main(["offset-syncs", *cluster, "--other", "printed"]) == 0
    expected = {"topic": "orders", "partition": 2, "upstreamOffset": 5, "downstreamOffset": 7}
    assert json.loads(capsys.readouterr().out) == expected
    assert main(["offset-syncs", *cluster, "--other", "nowhere"]) == 1
    assert "offset syncs of A->B are stored on A" in capsys.readouterr().err
