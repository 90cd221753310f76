"""Where partitions begin and end (ListOffsets)."""

from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import LEADER_NOT_AVAILABLE, Needed, error_for
from sparkmirror.kafka.metadata import Broker, Metadata, read_metadata

EARLIEST = -2
LATEST = -1
_VERSION_MAX = 7
_REPLICA_OF_NO_BROKER = -1


def list_offsets(
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    metadata: Metadata | None = None,
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The EARLIEST or LATEST offset of each partition, or why it could not be had.

    LATEST is the last stable offset under read_committed. `metadata` spares a request to whoever has just
    read that of these topics. Raises RetriableError when nobody can tell.
    """
    if not partitions:
        return {}
    if metadata is None:
        topics = {partition.topic for partition in partitions}
        metadata = read_metadata(settings.connection, topics)
    results: dict[TopicPartition, int | SparkmirrorError] = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = metadata.leaders.get(partition)
        if leader is None:
            code = metadata.errors.get(partition.topic, LEADER_NOT_AVAILABLE)
            needed = Needed(settings.connection, (Need.DESCRIBE_TOPIC.of(partition.topic),))
            results[partition] = error_for(code, f"{partition} on the source", needed=needed)
        else:
            by_leader.setdefault(leader.node_id, []).append(partition)
    for node_id, led in by_leader.items():
        results.update(_ask(metadata.brokers[node_id], settings, led, which))
    return results


def require_offsets(
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    metadata: Metadata | None = None,
) -> Mapping[TopicPartition, int]:
    """As `list_offsets`, for whoever needs every one. Raises KafkaError, also when one can't be had."""
    offsets: dict[TopicPartition, int] = {}
    for partition, offset in list_offsets(settings, partitions, which, metadata).items():
        if isinstance(offset, SparkmirrorError):
            raise offset
        offsets[partition] = offset
    return offsets


def _ask(
    broker: Broker, settings: ConsumerSettings, partitions: Collection[TopicPartition], which: int
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    try:
        connection = Connection.open(broker.host, broker.port, settings.connection)
    except SparkmirrorError as error:
        return dict.fromkeys(partitions, error)
    try:
        response = connection.request(
            _request(partitions, which, read_committed=settings.read_committed),
            ListOffsetsResponse,
            timeout_s=settings.connection.request_timeout_s,
            version_max=_VERSION_MAX,
        )
    except SparkmirrorError as error:
        return dict.fromkeys(partitions, error)
    finally:
        connection.close()
    return {
        TopicPartition(topic.name, answer.partition_index): _result(topic.name, answer, settings.connection)
        for topic in response.topics
        for answer in topic.partitions
    }


def _result(topic: str, answer: Any, connection: ConnectionSettings) -> int | SparkmirrorError:
    if answer.error_code:
        needed = Needed(connection, (Need.DESCRIBE_TOPIC.of(topic),))
        return error_for(answer.error_code, f"ListOffsets of {topic}-{answer.partition_index}", needed=needed)
    return int(answer.offset)


def _request(partitions: Collection[TopicPartition], which: int, *, read_committed: bool) -> Any:
    by_topic: dict[str, list[Any]] = {}
    for topic, partition in partitions:
        asked = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=which
        )
        by_topic.setdefault(topic, []).append(asked)
    return ListOffsetsRequest(
        replica_id=_REPLICA_OF_NO_BROKER,
        isolation_level=int(read_committed),
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=asked)
            for topic, asked in by_topic.items()
        ],
    )
