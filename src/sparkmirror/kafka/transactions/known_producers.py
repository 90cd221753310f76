"""Asks a partition's leader how far it has written what an idempotent producer sent (KIP-664)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, numbers_by_topic
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.connection import Connection


class KnownProducer(NamedTuple):
    """A leader's state of a producer id: its epoch and last sequence, -1 if it has only markers."""

    epoch: int
    last_sequence: int


def known_producers(
    settings: ConnectionSettings, producer_ids: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, KnownProducer | SparkmirrorError | None]:
    """Read each leader's state of an id, replicated or not; None if it has none.

    Errors are AuthorizationError without READ on the topic, UnsupportedVersionError before Kafka 2.8. Raises
    RetriableError when no broker responds.
    """
    return {
        partition: found if isinstance(found, SparkmirrorError) else _known(found, producer_ids[partition])
        for partition, found in _states(settings, producer_ids).items()
    }


def _states(
    settings: ConnectionSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, Sequence[Any] | SparkmirrorError]:
    """The producers that each leader remembers."""
    if not partitions:
        return {}
    with closing(Cluster(settings)) as cluster:

        def ask(
            connection: Connection, led: Sequence[TopicPartition]
        ) -> Mapping[TopicPartition, Sequence[Any] | SparkmirrorError]:
            topics = [
                DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in numbers_by_topic(led).items()
            ]
            request, timeout_s = DescribeProducersRequest(topics=topics), settings.request_timeout_s
            response = connection.request(request, DescribeProducersResponse, timeout_s=timeout_s)
            return {
                TopicPartition(topic.name, found.partition_index): _active(cluster, topic.name, found)
                for topic in response.topics
                for found in topic.partitions
            }

        return cluster.ask_leaders(partitions, ask)


def _active(cluster: Cluster, topic: str, found: Any) -> Sequence[Any] | SparkmirrorError:
    if found.error_code:
        action = f"DescribeProducers of {topic}-{found.partition_index}"
        return cluster.error(found.error_code, action, Need.READ_TOPIC.of(topic))
    active: Sequence[Any] = found.active_producers
    return active


def _known(states: Sequence[Any], producer_id: int) -> KnownProducer | None:
    known = [state for state in states if state.producer_id == producer_id]
    newest = max(known, key=lambda state: state.producer_epoch, default=None)
    return None if newest is None else KnownProducer(newest.producer_epoch, newest.last_sequence)
