"""Asks a partition's leader how far it has written what an idempotent producer sent (KIP-664)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import SEQUENCE_MODULUS
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError, UnsupportedVersionError
from sparkmirror.domain.ids import TopicPartition, numbers_by_topic
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import LATEST, require_offsets
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.net.connection import Connection


class Written(NamedTuple):
    """The last batch of a producer: its last sequence, and its largest timestamp in ms."""

    sequence: int
    timestamp: int


class KnownProducer(NamedTuple):
    """A leader's state of a producer id: its epoch and last sequence, -1 if it has only markers."""

    epoch: int
    last_sequence: int


def known_producers(
    settings: ConnectionSettings, producer_ids: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, KnownProducer | SparkmirrorError | None]:
    """Read each leader's state of an id, replicated or not; None if it has none. Errors as in `last_written`.

    Raises RetriableError when no broker responds.
    """
    return {
        partition: found if isinstance(found, SparkmirrorError) else _known(found, producer_ids[partition])
        for partition, found in _states(settings, producer_ids).items()
    }


def last_written(
    settings: ConnectionSettings, partition: TopicPartition, producer: ProducerId
) -> Written | None:
    """The last batch under this id and epoch in the leader's log, replicated or not; None for none.

    Raises KafkaError, AuthorizationError without READ on the topic, UnsupportedVersionError before Kafka 2.8.
    """
    found = _states(settings, [partition])[partition]
    if isinstance(found, SparkmirrorError):
        raise found
    return _last(found, producer)


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


def unreplicated_records(
    settings: ConnectionSettings, partition: TopicPartition, state: ProducerState
) -> int:
    """Count the leader's records behind the state's sequence that are not readable yet.

    They appear once its followers have them, or are gone with it. 0 also where the leader does not say.
    Raises KafkaError.
    """
    try:
        last = last_written(settings, partition, state.producer)
    except (AuthorizationError, UnsupportedVersionError):
        return 0
    if last is None or _is_readable(settings, partition, state.producer, last):
        return 0
    return (last.sequence + 1 - state.next_sequence) % SEQUENCE_MODULUS


def _is_readable(
    settings: ConnectionSettings, partition: TopicPartition, producer: ProducerId, last: Written
) -> bool:
    """Whether consumers see this batch."""
    consumer = ConsumerSettings(settings)
    begin = require_offsets(consumer, [partition], last.timestamp)[partition]
    if begin < 0:
        return False  # nothing that they see is as late
    end = require_offsets(consumer, [partition], LATEST)[partition]
    with closing(SpanReader(consumer)) as reader:
        headers = (batch.header for batch in reader.read(partition, begin, end))
        return any(producer.wrote(header) and header.last_sequence == last.sequence for header in headers)


def _last(states: Sequence[Any], producer: ProducerId) -> Written | None:
    """-1 stands for a producer of which the log has markers only."""
    known = (state for state in states if (state.producer_id, state.producer_epoch) == producer)
    return next(
        (Written(state.last_sequence, state.last_timestamp) for state in known if state.last_sequence >= 0),
        None,
    )
