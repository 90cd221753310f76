"""Writes many control markers into a log at once, by the request that brokers send each other.

It takes ALTER or CLUSTER_ACTION on the cluster. A leader refuses markers of an epoch below one that it has
seen, and those of a coordinator that has been replaced.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
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
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.error_codes import NONE

MARKERS_PER_REQUEST: Final = 1000
"""100 bytes each in the log: a request is answered within a tenth of a second."""

_VERSION_MAX: Final = 1
_COORDINATOR_EPOCH: Final = struct.Struct(">hi")


class Bulk(NamedTuple):
    """A number of markers for a partition."""

    producer: ProducerId
    coordinator_epoch: int
    number: int


def coordinator_epoch(
    settings: ConnectionSettings, partition: TopicPartition, producer: ProducerId, offset: int
) -> int | None:
    """Read the coordinator epoch of the producer's marker at this offset; None for another batch.

    Raises KafkaError.
    """
    with closing(SpanReader(ConsumerSettings(settings))) as reader:
        for batch in reader.read(partition, offset, offset + 1, 1):
            if producer.wrote(batch.header) and batch.header.attributes & CONTROL:
                (record,) = read_records(batch)
                value = read_body(record.body).value
                return int(_COORDINATOR_EPOCH.unpack_from(value or b"")[1])
    return None


def write_markers(
    cluster: Cluster, bulks: Mapping[TopicPartition, Bulk]
) -> Mapping[TopicPartition, SparkmirrorError | None]:
    """Write them all, request by request, each sent once: a broker appends what it gets twice, twice.

    After an error it is unknown how many are in the log, or will be.

    Raises RetriableError when no broker responds.
    """

    def ask(
        connection: Connection, led: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, SparkmirrorError | None]:
        left = {partition: bulks[partition].number for partition in led}
        errors: dict[TopicPartition, SparkmirrorError | None] = dict.fromkeys(led)
        while due := [at for at in led if left[at] and errors[at] is None]:
            most = max(MARKERS_PER_REQUEST // len(due), 1)
            counts = {at: min(left[at], most) for at in due}
            errors.update(_written(cluster, connection, bulks, counts))
            left.update({at: left[at] - number for at, number in counts.items()})
        return errors

    return cluster.ask_leaders(bulks, ask, repeats=False)


def _written(
    cluster: Cluster,
    connection: Connection,
    bulks: Mapping[TopicPartition, Bulk],
    counts: Mapping[TopicPartition, int],
) -> Mapping[TopicPartition, SparkmirrorError]:
    """Errors of one request."""
    markers = [_marker(at, bulks[at]) for at, number in counts.items() for _ in range(number)]
    response = connection.request(
        WriteTxnMarkersRequest(markers=markers),
        WriteTxnMarkersResponse,
        timeout_s=cluster.settings.request_timeout_s,
        version_max=_VERSION_MAX,
    )
    return {
        partition: cluster.error(code, f"WriteTxnMarkers into {partition}", Need.WRITE_MARKERS.of())
        for partition, code in _codes(response)
        if code != NONE
    }


def _marker(partition: TopicPartition, bulk: Bulk) -> Any:
    """Each names one partition: one that it names twice would never be answered."""
    marker_class = WriteTxnMarkersRequest.WritableTxnMarker
    topic = marker_class.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    return marker_class(
        producer_id=bulk.producer.id,
        producer_epoch=bulk.producer.epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=bulk.coordinator_epoch,
    )


def _codes(response: Any) -> Iterator[tuple[TopicPartition, int]]:
    for marker in response.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                yield TopicPartition(topic.name, partition.partition_index), partition.error_code
