"""How many bytes partitions have on their leaders' disks (DescribeLogDirs, KIP-113)."""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.metadata import Broker, read_metadata


def log_sizes(
    settings: ConnectionSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Those that are told: it takes DESCRIBE on the cluster. Raises DisconnectedError when nobody answers."""
    metadata = read_metadata(settings, {partition.topic for partition in partitions})
    sizes: dict[TopicPartition, int] = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        if partition in metadata.leaders:
            by_leader.setdefault(metadata.leaders[partition].node_id, []).append(partition)
    for node_id, led in by_leader.items():
        sizes.update(_ask(metadata.brokers[node_id], settings, led))
    return sizes


def _ask(
    broker: Broker, settings: ConnectionSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    asked = [
        DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=numbers)
        for topic, numbers in by_topic.items()
    ]
    try:
        with closing(Connection.open(broker.host, broker.port, settings)) as connection:
            response = connection.request(
                DescribeLogDirsRequest(topics=asked),
                DescribeLogDirsResponse,
                timeout_s=settings.request_timeout_s,
            )
    except SparkmirrorError:
        return {}
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for directory in response.results
        for topic in directory.topics
        for partition in topic.partitions
        if not _is_moving(partition)
    }


def _is_moving(partition: Any) -> bool:
    """A copy on its way to another disk is none of the log's bytes."""
    return bool(partition.is_future_key)
