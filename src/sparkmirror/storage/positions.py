"""Positions in Connect's offsets topic, in MM2's bytes: the last replicated upstream offset per partition.

Java MM2 and this project can therefore continue from each other's positions.
"""

from collections.abc import Collection, Mapping

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect_records import (
    SourcePartition,
    parse_source_position_value,
    source_position_key,
    source_position_value,
)
from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.domain.log_records import LogRecord
from sparkmirror.kafka.topic_log import read_topic


def position_record(
    connector: ConnectorName, source: Alias, partition: TopicPartition, offset: int
) -> LogRecord:
    """`offset` is the last replicated upstream offset."""
    key = source_position_key(SourcePartition(connector, source, *partition))
    return LogRecord(key, source_position_value(offset), partition=None)


def read_positions(
    settings: ConnectionSettings,
    topic: str,
    connector: ConnectorName,
    source: Alias,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, int]:
    """The last replicated offset of each partition that has one, found by raw key bytes as Connect does."""
    wanted = {
        source_position_key(SourcePartition(connector, source, *partition)): partition
        for partition in partitions
    }
    positions: dict[TopicPartition, int] = {}
    for record in read_topic(settings, topic):
        partition = wanted.get(record.key or b"")
        if partition is None:
            continue
        offset = parse_source_position_value(record.value)
        if offset is None or offset < 0:
            positions.pop(partition, None)
        else:
            positions[partition] = offset
    return positions
