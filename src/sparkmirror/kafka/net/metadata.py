"""Reads the metadata of a cluster: its brokers, the leaders of partitions, ids and errors of topics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.primitives import NO_EPOCH, TOPIC_ID_BYTES

_VERSION_MAX = 12
"""The newest version used; topic ids are in 10 and newer."""

_UNKNOWN_ID = bytes(TOPIC_ID_BYTES)


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port


class Leader(NamedTuple):
    node_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """A response. `leaders` lacks partitions without a leader; `errors` has a code for each missing topic.

    `partitions` counts those of each topic, with and without a leader, `replicas` those of its first one.
    `topic_ids` is empty where brokers have none.
    """

    cluster_id: str = ""
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, Leader] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    controller_id: int = -1
    replicas: Mapping[str, int] = field(default_factory=dict)


def request_metadata(connection: Connection, topics: Collection[str], timeout_s: float) -> Metadata:
    """Ask over this connection. Raises DisconnectedError."""
    wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in sorted(topics)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    response = connection.request(request, MetadataResponse, timeout_s=timeout_s, version_max=_VERSION_MAX)
    return _from_response(response)


def _from_response(response: Any) -> Metadata:
    brokers = {
        broker.node_id: Broker(broker.node_id, broker.host, broker.port) for broker in response.brokers
    }
    leaders = {}
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.leader_id in brokers:
                epoch = getattr(partition, "leader_epoch", None)
                leader = Leader(partition.leader_id, NO_EPOCH if epoch is None else epoch)
                leaders[TopicPartition(topic.name, partition.partition_index)] = leader
    errors = {topic.name: topic.error_code for topic in response.topics if topic.error_code}
    partitions = {topic.name: len(topic.partitions) for topic in response.topics if not topic.error_code}
    topic_ids = {topic.name: topic.topic_id.bytes for topic in response.topics if _has_id(topic)}
    replicas = {
        topic.name: len(topic.partitions[0].replica_nodes) for topic in response.topics if topic.partitions
    }
    return Metadata(
        response.cluster_id or "",
        brokers,
        leaders,
        errors,
        partitions,
        topic_ids,
        response.controller_id,
        replicas,
    )


def _has_id(topic: Any) -> bool:
    topic_id = getattr(topic, "topic_id", None)
    return topic_id is not None and topic_id.bytes != _UNKNOWN_ID
