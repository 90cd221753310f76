"""Moves the starts of logs (KIP-107, KIP-204): what is before is deleted, as by retention."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest, DeleteRecordsResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.error_codes import OFFSET_OUT_OF_RANGE


def move_log_starts(
    settings: ConnectionSettings, starts: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The offset where each log starts then on all replicas that are alive, or the reason why it does not.

    A start that is there already, or behind, stays. Where all brokers have crashed, a leader has to learn
    again what is replicated: that may pass. Raises RetriableError when no broker responds.
    """
    if not starts:
        return {}
    with closing(Cluster(settings)) as cluster:

        def ask(
            connection: Connection, led: Sequence[TopicPartition]
        ) -> Mapping[TopicPartition, int | SparkmirrorError]:
            request = _request({partition: starts[partition] for partition in led}, settings)
            timeout_s = settings.request_timeout_s
            response = connection.request(request, DeleteRecordsResponse, timeout_s=timeout_s)
            return {
                TopicPartition(topic.name, found.partition_index): _start(cluster, topic.name, found)
                for topic in response.topics
                for found in topic.partitions
            }

        return cluster.ask_leaders(starts, ask)


def _start(cluster: Cluster, topic: str, found: Any) -> int | SparkmirrorError:
    if found.error_code == OFFSET_OUT_OF_RANGE:
        text = f"{topic}-{found.partition_index} is not replicated up to there yet: waiting for the followers"
        return RetriableError(text, found.error_code)
    if found.error_code:
        action = f"DeleteRecords of {topic}-{found.partition_index}"
        return cluster.error(found.error_code, action, Need.DELETE_RECORDS.of(topic))
    return int(found.low_watermark)


def _request(starts: Mapping[TopicPartition, int], settings: ConnectionSettings) -> Any:
    topic_class = DeleteRecordsRequest.DeleteRecordsTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), start in starts.items():
        moved = topic_class.DeleteRecordsPartition(partition_index=partition, offset=start)
        by_topic.setdefault(topic, []).append(moved)
    return DeleteRecordsRequest(
        topics=[topic_class(name=topic, partitions=moved) for topic, moved in by_topic.items()],
        timeout_ms=int(settings.request_timeout_s * 1000),
    )
