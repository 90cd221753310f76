"""Writes many control markers into a log at once, by the request that brokers send each other.

It takes ALTER or CLUSTER_ACTION on the cluster. A leader refuses markers of an epoch below one that it has
seen, and those of a coordinator that has been replaced.
"""

import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from kafka.protocol.producer import WriteTxnMarkersRequest, WriteTxnMarkersResponse

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.batches.record_body import read_body
from sparkmirror.batches.records import read_records
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import NONE
from sparkmirror.kafka.partition_reader import SpanReader

MARKERS_PER_REQUEST: Final = 1000
"""100 bytes each in the log: a request is answered within a tenth of a second."""

_VERSION_MAX: Final = 1
_COORDINATOR_EPOCH: Final = struct.Struct(">hi")


class Bulk(NamedTuple):
    """So many markers for a partition."""

    producer: ProducerId
    coordinator_epoch: int
    number: int


def coordinator_epoch(
    settings: ConnectionSettings, partition: TopicPartition, producer: ProducerId, offset: int
) -> int | None:
    """That of the producer's marker at this offset; None where there is another batch. Raises KafkaError."""
    with closing(SpanReader(ConsumerSettings(settings))) as reader:
        for batch in reader.read(partition, offset, offset + 1, 1):
            if producer.wrote(batch.header) and batch.header.attributes & CONTROL:
                (record,) = read_records(batch)
                value = read_body(record.body).value
                return int(_COORDINATOR_EPOCH.unpack_from(value or b"")[1])
    return None


def write_markers(
    settings: ConnectionSettings, bulks: Mapping[TopicPartition, Bulk]
) -> Mapping[TopicPartition, SparkmirrorError | None]:
    """Write them all, request by request. After an error it is unknown how many are in the log, or will be.

    Raises RetriableError when no broker responds.
    """
    with closing(Cluster(settings)) as cluster:

        def ask(
            connection: Connection, led: Sequence[TopicPartition]
        ) -> Mapping[TopicPartition, SparkmirrorError | None]:
            return {partition: write(connection, partition, bulks[partition]) for partition in led}

        def write(connection: Connection, partition: TopicPartition, bulk: Bulk) -> SparkmirrorError | None:
            for begin in range(0, bulk.number, MARKERS_PER_REQUEST):
                response = connection.request(
                    _request(partition, bulk, min(bulk.number - begin, MARKERS_PER_REQUEST)),
                    WriteTxnMarkersResponse,
                    timeout_s=settings.request_timeout_s,
                    version_max=_VERSION_MAX,
                )
                code = next((code for code in _codes(response) if code), NONE)
                if code != NONE:
                    return cluster.error(code, f"WriteTxnMarkers into {partition}", Need.WRITE_MARKERS.of())
            return None

        return cluster.ask_leaders(bulks, ask)


def _request(partition: TopicPartition, bulk: Bulk, count: int) -> Any:
    marker_class = WriteTxnMarkersRequest.WritableTxnMarker
    topic = marker_class.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    marker = marker_class(
        producer_id=bulk.producer.id,
        producer_epoch=bulk.producer.epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=bulk.coordinator_epoch,
    )
    return WriteTxnMarkersRequest(markers=[marker] * count)


def _codes(response: Any) -> Sequence[int]:
    return [
        partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    ]
