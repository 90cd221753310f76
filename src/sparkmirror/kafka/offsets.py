"""Where partitions begin and end (ListOffsets)."""

from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import error_for
from sparkmirror.kafka.metadata import Broker, Metadata, read_metadata

EARLIEST = -2
LATEST = -1
_VERSION_MAX = 7
_REPLICA_OF_NO_BROKER = -1


def list_offsets(
    settings: ConnectionSettings, partitions: Collection[TopicPartition], which: int
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The EARLIEST or LATEST offset of each partition, or why it could not be had.

    Raises DisconnectedError when no broker answers at all.
    """
    metadata = read_metadata(settings, sorted({partition.topic for partition in partitions}), Metadata())
    results: dict[TopicPartition, int | SparkmirrorError] = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = metadata.leaders.get(partition)
        if leader is None:
            results[partition] = RetriableError(f"{partition} has no leader")
        else:
            by_leader.setdefault(leader.node_id, []).append(partition)
    for node_id, led in by_leader.items():
        results.update(_ask(metadata.brokers[node_id], settings, led, which))
    return results


def _ask(
    broker: Broker, settings: ConnectionSettings, partitions: Collection[TopicPartition], which: int
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    try:
        connection = Connection.open(broker.host, broker.port, settings)
    except SparkmirrorError as error:
        return dict.fromkeys(partitions, error)
    try:
        response = connection.request(
            _request(partitions, which),
            ListOffsetsResponse,
            timeout_s=settings.request_timeout_s,
            version_max=_VERSION_MAX,
        )
    except SparkmirrorError as error:
        return dict.fromkeys(partitions, error)
    finally:
        connection.close()
    return {
        TopicPartition(topic.name, answer.partition_index): _result(topic.name, answer)
        for topic in response.topics
        for answer in topic.partitions
    }


def _result(topic: str, answer: Any) -> int | SparkmirrorError:
    if answer.error_code:
        return error_for(answer.error_code, f"ListOffsets of {topic}-{answer.partition_index}")
    return int(answer.offset)


def _request(partitions: Collection[TopicPartition], which: int) -> Any:
    by_topic: dict[str, list[Any]] = {}
    for topic, partition in partitions:
        asked = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=which
        )
        by_topic.setdefault(topic, []).append(asked)
    return ListOffsetsRequest(
        replica_id=_REPLICA_OF_NO_BROKER,
        isolation_level=0,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=asked)
            for topic, asked in by_topic.items()
        ],
    )
