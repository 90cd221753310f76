"""Reads, writes and configures topics with a client that shares no code with the mirror."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import confluent_kafka as confluent
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from sparkmirror.batches.record_batch import FetchedBatch, iterate_batches
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support import topic_reader
from tests.support.any_cluster import AnyCluster
from tests.support.waiting import await_value

_TIMEOUT_S: Final = 60.0

Keyed = tuple[bytes | None, bytes | None]
"""A record's key and value."""


def admin(cluster: AnyCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def topics(cluster: AnyCluster) -> Mapping[str, int]:
    """The topics and their numbers of partitions."""
    listed = admin(cluster).list_topics(timeout=_TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in listed.items()}


def replication_factor(cluster: AnyCluster, topic: str) -> int:
    (listed,) = admin(cluster).list_topics(topic, timeout=_TIMEOUT_S).topics.values()
    return len(listed.partitions[0].replicas)


def config(cluster: AnyCluster, topic: str) -> Mapping[str, str | None]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(cluster)  # a closed client would cancel the request
    (future,) = client.describe_configs([resource]).values()
    return {name: entry.value for name, entry in future.result(_TIMEOUT_S).items()}


def configure(cluster: AnyCluster, topic: str, changes: Mapping[str, str | None]) -> None:
    """Set these configs; None goes back to the default. Return when the broker tells them."""
    entries = [
        ConfigEntry(
            name,
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in changes.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = admin(cluster)  # a closed client would cancel the request
    (future,) = client.incremental_alter_configs([resource]).values()
    future.result(_TIMEOUT_S)
    wanted = {name: value for name, value in changes.items() if value is not None}
    await_value(lambda: wanted.items() <= config(cluster, topic).items(), _TIMEOUT_S, lambda: f"not {wanted}")


def grow(cluster: AnyCluster, topic: str, partitions: int) -> None:
    """Return when the leaders of all partitions serve them."""
    client = admin(cluster)  # a closed client would cancel the request
    (future,) = client.create_partitions([NewPartitions(topic, partitions)]).values()
    future.result(_TIMEOUT_S)
    topic_reader.await_leaders(cluster.bootstrap_servers, {topic: partitions})


def append(
    cluster: AnyCluster,
    topic: str,
    records: Iterable[Keyed],
    *,
    partition: int = 0,
    settings: Mapping[str, str] | None = None,
    timestamp_ms: int = 0,
) -> None:
    """Produce and wait for the acknowledgements; partition -1 lets the key choose."""
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **(settings or {})}
    )
    for key, value in records:
        producer.produce(
            topic,
            partition=partition,
            key=key,
            value=value,
            timestamp=timestamp_ms,
            on_delivery=_raise_undelivered,
        )
    assert producer.flush(_TIMEOUT_S) == 0, f"{topic} was not acknowledged"


def numbered(count: int, first: int = 0) -> list[Keyed]:
    return [(b"key-%d" % number, b"value-%d" % number) for number in range(first, first + count)]


def records(cluster: AnyCluster, topic: str, *, read_committed: bool = False) -> Iterator[confluent.Message]:
    """All records of all partitions, by default with aborted ones; none if the topic doesn't exist."""
    with topic_reader.TopicReader(cluster.bootstrap_servers, topic, read_committed=read_committed) as reader:
        for partition in range(reader.partition_count()):
            yield from reader.read(partition)


def keyed(cluster: AnyCluster, topic: str) -> list[Keyed]:
    """Keys and values of all records."""
    return [(record.key(), record.value()) for record in records(cluster, topic)]


def latest(cluster: AnyCluster, topic: str) -> Mapping[bytes | None, bytes | None]:
    """Read the newest value of each key."""
    return dict(keyed(cluster, topic))


def end_offsets(cluster: AnyCluster, names: Collection[str]) -> Mapping[TopicPartition, int]:
    return topic_reader.end_offsets(cluster.bootstrap_servers, names)


def batches_on_disk(cluster: LocalCluster, topic: str, partition: int = 0) -> list[FetchedBatch]:
    """Read the batches as stored by the broker, of a topic with one segment."""
    (log,) = (cluster.brokers[0].data / f"{topic}-{partition}").glob("*.log")
    return list(iterate_batches(memoryview(bytearray(log.read_bytes()))))


def _raise_undelivered(error: confluent.KafkaError | None, _: confluent.Message) -> None:
    if error is not None:
        raise confluent.KafkaException(error)


def create_topic(
    bootstrap_servers: str, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic without replicas and wait for its leaders; one that exists is an error."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    new_topic = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
    client.create_topics([new_topic])[topic].result(_TIMEOUT_S)
    topic_reader.await_leaders(bootstrap_servers, {topic: partitions})


def ensure_compacted_topic(bootstrap_servers: str, topic: str) -> None:
    """Create a compacted topic that several test processes share, unless one of them has."""
    try:
        create_topic(bootstrap_servers, topic, config={"cleanup.policy": "compact"})
    except confluent.KafkaException as error:
        if error.args[0].code() != confluent.KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        topic_reader.await_leaders(bootstrap_servers, {topic: 1})


def delete_topic(cluster: AnyCluster, topic: str) -> None:
    """Delete the topic; returns when brokers no longer list it."""
    client = admin(cluster)  # a closed client would cancel the request
    client.delete_topics([topic])[topic].result(_TIMEOUT_S)
    await_value(
        lambda: topic not in client.list_topics(timeout=_TIMEOUT_S).topics,
        _TIMEOUT_S,
        lambda: f"{topic} stays",
    )


def keyed_of(cluster: AnyCluster, topic: str, partition: int = 0) -> list[Keyed]:
    """Keys and values of one partition."""
    found = records(cluster, topic)
    return [(record.key(), record.value()) for record in found if record.partition() == partition]


def delete_records(cluster: AnyCluster, topic: str, before: int) -> None:
    """Delete the records of partition 0 before the offset."""
    move_log_starts(cluster, {TopicPartition(topic, 0): before})


def move_log_starts(cluster: AnyCluster, starts: Mapping[TopicPartition, int]) -> None:
    """Delete the records before these offsets, as retention does."""
    client = admin(cluster)  # a closed client would cancel the request
    wanted = [confluent.TopicPartition(*partition, start) for partition, start in starts.items()]
    for future in client.delete_records(wanted).values():
        future.result(_TIMEOUT_S)
