"""State topics as logs: writes are read back, reads reach the end, and requests create no topic."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.kafka.data.topic_log import TopicTail, TopicWriter, read_topic
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import append, create_topic, delete_records, keyed, numbered, records, topics
from tests.support.connections import connection
from tests.support.waiting import patience

MISSING: Final = "contract.log-missing"


@pytest.fixture
def settings(cluster: AnyCluster) -> ConnectionSettings:
    return connection(cluster)


@pytest.fixture
def writer(settings: ConnectionSettings) -> Iterator[TopicWriter]:
    made = TopicWriter(settings)
    yield made
    made.close()


@pytest.fixture
def topic(cluster: AnyCluster, request: pytest.FixtureRequest) -> str:
    name = f"contract.{request.node.originalname}"
    create_topic(cluster.bootstrap_servers, name, partitions=3)
    return name


def test_written_records_are_there_at_their_offsets(
    cluster: AnyCluster, writer: TopicWriter, topic: str
) -> None:
    written = [
        LogRecord(b"key", b"value", 1, 1_700_000_000_000),
        LogRecord(None, b"", 1),
        LogRecord(b"", None, 1, headers=(("id", b"7"), ("id", None))),
    ]
    assert writer.write(topic, written) == [0, 1, 2]
    assert writer.write(topic, [LogRecord(b"key", b"again", 1)]) == [3]
    found = list(records(cluster, topic))
    assert [(record.partition(), record.key(), record.value()) for record in found] == [
        (1, b"key", b"value"),
        (1, None, b""),
        (1, b"", None),
        (1, b"key", b"again"),
    ]
    assert [record.headers() for record in found] == [None, None, [("id", b"7"), ("id", None)], None]
    assert found[0].timestamp() == (confluent.TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    assert abs(found[1].timestamp()[1] - time.time() * 1000) < 60_000


def test_keys_are_partitioned_as_by_java(cluster: AnyCluster, writer: TopicWriter, topic: str) -> None:
    """Connect finds a key's newest value because one partition has all of its values (murmur2)."""
    pairs = numbered(40)
    writer.write(topic, [LogRecord(key, value, partition=None) for key, value in pairs])
    append(cluster, topic, pairs, partition=-1, settings={"partitioner": "murmur2_random"})
    placed: dict[bytes | None, list[int | None]] = {}
    for record in records(cluster, topic):
        placed.setdefault(record.key(), []).append(record.partition())
    assert {len(places) for places in placed.values()} == {2}
    assert {len(set(places)) for places in placed.values()} == {1}
    assert {places[0] for places in placed.values()} == {0, 1, 2}


def test_a_read_gives_every_partition_up_to_its_end(
    cluster: AnyCluster, settings: ConnectionSettings, topic: str
) -> None:
    for number in range(2):
        append(cluster, topic, numbered(700), partition=number)
    found = list(read_topic(settings, topic))
    for number in range(2):
        of_partition = [record for record in found if record.partition == number]
        assert [(record.key, record.value) for record in of_partition] == numbered(700)
        assert [record.offset for record in of_partition] == list(range(700))


def test_a_read_ends_behind_the_marker_of_a_transaction(
    cluster: AnyCluster, settings: ConnectionSettings, topic: str
) -> None:
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(30)
    for value, end in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        end(30)
    assert [record.value for record in read_topic(settings, topic, read_committed=True)] == [b"kept"]
    assert [record.value for record in read_topic(settings, topic)] == [b"kept", b"dropped"]


def test_tail_reads_new_records_from_an_offset_on(
    cluster: AnyCluster, settings: ConnectionSettings, topic: str
) -> None:
    append(cluster, topic, numbered(5))
    tail = TopicTail(settings, topic, from_offset=3)
    try:
        assert [record.offset for record in tail.read_to_end(20)] == [3, 4]
        assert tail.poll(0) == []
        append(cluster, topic, numbered(1, 5))
        assert [(record.key, record.value) for record in tail.poll(20)] == numbered(1, 5)
    finally:
        tail.close()


def test_a_tail_below_the_logs_start_begins_there(
    cluster: AnyCluster, settings: ConnectionSettings, topic: str
) -> None:
    append(cluster, topic, numbered(5))
    delete_records(cluster, topic, 2)
    tail = TopicTail(settings, topic)
    try:
        assert [record.offset for record in tail.read_to_end(20)] == [2, 3, 4]
    finally:
        tail.close()


def test_more_than_a_batch_holds_is_written_in_order(
    cluster: AnyCluster, settings: ConnectionSettings, writer: TopicWriter, topic: str
) -> None:
    """Thousands of partitions report at once, and a batch has at most one megabyte."""
    written = [LogRecord(b"%d" % number, bytes(10_000), number % 2) for number in range(200)]
    offsets = writer.write(topic, written)
    assert offsets == [number // 2 for number in range(200)]
    found = list(read_topic(settings, topic))
    assert sorted((int(record.key or b""), record.partition, record.offset) for record in found) == [
        (number, number % 2, number // 2) for number in range(200)
    ]


def test_metadata_request_does_not_create_the_topic(
    cluster: AnyCluster, settings: ConnectionSettings
) -> None:
    """By default brokers create missing topics with configs that are wrong for state topics."""
    with pytest.raises(KafkaError, match=f"^read {MISSING}: .*UNKNOWN_TOPIC_OR_PARTITION"):
        list(read_topic(settings, MISSING))
    tail = TopicTail(settings, MISSING)
    try:
        assert tail.poll(0.2) == []
    finally:
        tail.close()
    writer = TopicWriter(replace(settings, request_timeout_s=0.5))
    with pytest.raises(KafkaError, match=f"^write to {MISSING}: "):
        writer.write(MISSING, [LogRecord(b"key", b"value")])
    writer.close()
    assert MISSING not in topics(cluster)


def test_a_refused_record_is_an_error_that_names_the_topic(cluster: AnyCluster, writer: TopicWriter) -> None:
    compacted = "contract.log-compacted"
    create_topic(cluster.bootstrap_servers, compacted, config={"cleanup.policy": "compact"})
    where = f"partition 0 on {connection(cluster).cluster}"
    with pytest.raises(KafkaError, match=f"^write to {compacted}: {where}: INVALID_RECORD") as refused:
        writer.write(compacted, [LogRecord(None, b"no key")])
    assert not refused.value.retriable
    assert writer.write(compacted, [LogRecord(b"key", b"value")]) == [0]
    assert keyed(cluster, compacted) == [(b"key", b"value")]


def test_unreachable_cluster_is_reported_within_the_timeout_and_used_later() -> None:
    port = ReservedPort()
    nobody = ConnectionSettings(((HOST, port.number),), connect_timeout_s=0.5, request_timeout_s=0.5)
    port.release()
    writer = TopicWriter(nobody)
    for call in (
        lambda: writer.write("topic", [LogRecord(b"key", b"value")]),
        lambda: list(read_topic(nobody, "topic")),
        lambda: TopicTail(nobody, "topic").poll(0.1),
    ):
        started = time.monotonic()
        with pytest.raises(KafkaError, match=f"{HOST}:{port.number}") as error:
            call()
        assert error.value.retriable
        assert time.monotonic() - started < 5 * patience()
    writer.close()
