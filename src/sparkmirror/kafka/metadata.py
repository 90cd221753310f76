"""Who leads which partition, read on demand over any broker that answers."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.wire import TOPIC_ID_BYTES

_VERSION_MAX = 12
"""From 10 on with topic ids."""

_UNKNOWN_ID = bytes(TOPIC_ID_BYTES)

NO_EPOCH = -1

Address = tuple[str, int]
"""Host and port."""


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int


class Leader(NamedTuple):
    node_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """One answer. `leaders` lacks partitions without a leader; `errors` holds a code per missing topic.

    `partitions` says how many each topic has, with and without a leader. `topic_ids` is empty where brokers
    tell none.
    """

    cluster_id: str = ""
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, Leader] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)


_known_brokers: dict[tuple[Address, ...], Sequence[Address]] = {}
"""By bootstrap servers: where the brokers were when anybody in this process last asked."""


def addresses(settings: ConnectionSettings) -> Sequence[Address]:
    """Where somebody may answer: the brokers that were last heard of, then the bootstrap servers.

    A process that has once reached a cluster finds it again when its bootstrap servers are gone or were named
    for other brokers, as Java's clients do (KIP-899).
    """
    known = list(_known_brokers.get(settings.bootstrap_servers, ()))
    random.shuffle(known)
    return list(dict.fromkeys([*known, *settings.bootstrap_servers]))


def read_metadata(settings: ConnectionSettings, topics: Collection[str]) -> Metadata:
    """Ask one after the other until one answers.

    Raises DisconnectedError naming every address tried, RetriableError when who answers takes no broker for
    alive, itself included: so does one that its controller has missed for a while, and such an answer tells
    nothing of topics and leaders either.
    """
    connection = connect_to_any(settings)
    try:
        found = request_metadata(connection, topics, settings.request_timeout_s)
    finally:
        connection.close()
    if not found.brokers:
        raise RetriableError(f"{connection.address} knows of no broker that is alive, itself included")
    brokers = [(broker.host, broker.port) for broker in found.brokers.values()]
    _known_brokers[settings.bootstrap_servers] = brokers
    return found


def connect_to_any(settings: ConnectionSettings) -> Connection:
    """A connection to some broker of the cluster; raises DisconnectedError naming every address tried."""
    failures = []
    for host, port in addresses(settings):
        try:
            return Connection.open(host, port, settings)
        except DisconnectedError as error:
            failures.append(str(error))
    raise DisconnectedError("; ".join(dict.fromkeys(failures)))


def request_metadata(connection: Connection, topics: Collection[str], timeout_s: float) -> Metadata:
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
    return Metadata(response.cluster_id or "", brokers, leaders, errors, partitions, topic_ids)


def _has_id(topic: Any) -> bool:
    topic_id = getattr(topic, "topic_id", None)
    return topic_id is not None and topic_id.bytes != _UNKNOWN_ID
