"""Source offsets that users alter: a copy resumes at them, and invalid ones are refused."""

import re
from typing import Final

import pytest

from sparkmirror.batches.producer import ProducerId
from sparkmirror.clusters import LocalCluster
from sparkmirror.config.worker_settings import InternalTopic, WorkerSettings
from sparkmirror.connect.topics.offsets_topic import read_connector_offsets, write_connector_offsets
from sparkmirror.connect.topics.topic_checks import check_connect_topics
from sparkmirror.domain.connect import ConnectError, ConnectorOffset
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.storage.positions import Position, read_positions
from tests.contract.copying import CONNECTOR, POSITIONS, SOURCE, Bench, running
from tests.support.broker_data import Keyed, append, create_topic, keyed
from tests.support.connections import connection

CLASS: Final = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
COMPACTED: Final = {"cleanup.policy": "compact"}


def test_a_copy_resumes_at_an_altered_offset_with_a_new_producer_epoch(bench: Bench) -> None:
    """The copy continues after the last replicated offset; after a reset it starts at the beginning."""
    topic = "contract.altered-offsets"
    partition = TopicPartition(topic, 0)
    bench.create(topic)
    written = bench.source_has(topic, 10)
    before = producer_of_copy(bench, partition, written)
    assert stored(bench, partition) == {"offset": 9}
    where = {"topic": topic, "partition": 0, "cluster": str(SOURCE)}
    alter(bench, ConnectorOffset(where, {"offset": 5}))
    assert position(bench, partition) == Position(5)
    assert stored(bench, partition) == {"offset": 5}
    altered = producer_of_copy(bench, partition, written + written[6:])
    alter(bench, ConnectorOffset(where, None))
    assert stored(bench, partition) is None
    forgotten = producer_of_copy(bench, partition, written + written[6:] + written)
    assert len({before, altered, forgotten}) == 3, "the same producer epoch was used again"


def test_malformed_keys_are_skipped(target_cluster: LocalCluster, caplog: pytest.LogCaptureFixture) -> None:
    topic = "contract.connect-offsets"
    create_topic(target_cluster.bootstrap_servers, topic, partitions=3, config=COMPACTED)
    settings = connection(target_cluster)
    where = {"cluster": "A", "partition": 0, "topic": "t"}
    write_connector_offsets(settings, topic, "c", CLASS, [ConnectorOffset(where, {"offset": 7})])
    append(target_cluster, topic, [(b"what", b"ever"), (b'["c",null]', b"{}")], partition=1)
    assert read_connector_offsets(settings, topic, "c") == [ConnectorOffset(where, {"offset": 7})]
    assert read_connector_offsets(settings, topic, "d") == []
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert sum(record.message.startswith(f"{topic}-1: offset ") for record in caplog.records) == 4


def test_refused_offsets_are_not_written(target_cluster: LocalCluster) -> None:
    topic = "contract.connect-offsets-refused"
    create_topic(target_cluster.bootstrap_servers, topic, config=COMPACTED)
    where = {"cluster": "A", "partition": 0, "topic": "t"}
    offsets = [
        ConnectorOffset(where, {"offset": 7}),
        ConnectorOffset({**where, "partition": 1}, {"offset": -7}),
    ]
    with pytest.raises(ConnectError, match="from 0 to"):
        write_connector_offsets(connection(target_cluster), topic, "c", CLASS, offsets)
    write_connector_offsets(connection(target_cluster), topic, "c", CLASS, [])
    assert keyed(target_cluster, topic) == []


@pytest.mark.parametrize(
    ("kind", "partitions", "policy", "reason"),
    [
        ("config", 1, "compact", None),
        ("config", 2, "compact", "required to have a single partition .* but found 2 partitions"),
        (
            "config",
            1,
            "delete",
            "consistency and durability of connector configurations, but .*'cleanup.policy=delete'",
        ),
        ("status", 3, "compact", None),
        ("status", 3, "compact,delete", "of connector and task statuses.*'cleanup.policy=compact,delete'"),
        ("offset", 3, "compact", None),
        ("offset", 3, "delete", "of source connector offsets.*'cleanup.policy=delete'"),
    ],
)
def test_topics_that_are_not_compacted_are_refused(
    target_cluster: LocalCluster, kind: str, partitions: int, policy: str, reason: str | None
) -> None:
    name = f"contract.connect-{kind}-{partitions}-{re.sub(',', '-', policy)}"
    create_topic(
        target_cluster.bootstrap_servers, name, partitions=partitions, config={"cleanup.policy": policy}
    )
    missing = {other: f"contract.no-such-{other}" for other in ("config", "offset", "status")}
    names = {other: InternalTopic(topic, 1, 1) for other, topic in {**missing, kind: name}.items()}
    worker = WorkerSettings("group", names["config"], names["offset"], names["status"], 60.0)
    admin = Admin(connection(target_cluster, alias="target"))
    try:
        if reason is None:
            check_connect_topics(admin, worker)
        else:
            said = (
                f"^Invalid value {name} for configuration {kind}.storage.topic: Topic '{name}' supplied via"
            )
            with pytest.raises(ConfigError, match=f"{said}.*{reason}"):
                check_connect_topics(admin, worker)
    finally:
        admin.close()


def producer_of_copy(bench: Bench, partition: TopicPartition, copied: list[Keyed]) -> ProducerId:
    """Run a copy until the target has exactly these records; returns its producer id and epoch."""
    with running(bench.plan(partition)):
        bench.await_copied(partition.topic, copied)
    state = position(bench, partition).producer
    assert state is not None
    return state.producer


def alter(bench: Bench, offset: ConnectorOffset) -> None:
    write_connector_offsets(connection(bench.target), POSITIONS, CONNECTOR, CLASS, [offset])


def position(bench: Bench, partition: TopicPartition) -> Position:
    return read_positions(connection(bench.target), POSITIONS, CONNECTOR, SOURCE, [partition])[partition]


def stored(bench: Bench, partition: TopicPartition) -> object:
    """Read the source offset as the REST API shows it."""
    found = read_connector_offsets(connection(bench.target), POSITIONS, CONNECTOR)
    offsets = {one.partition["topic"]: one.offset for one in found}
    return offsets.get(partition.topic)
