"""Produces one batch to each of several partitions, for a caller that may block.

The copy loop produces through `BatchWriter`.
"""

from collections.abc import Mapping, Sequence

from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import Needed, error_for
from sparkmirror.kafka.wire.produce import decode_produce_response, encode_produce_request


def produce_batches(
    cluster: Cluster,
    settings: ProducerSettings,
    batches: Mapping[TopicPartition, memoryview],
    transactional_id: str | None = None,
    version_max: int = produce.VERSION_HIGH,
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The offset of each batch, or the error; after one that may pass the batch may be in the log.

    One request at a time for each leader. `version_max` is that of the transaction, if there is one. Raises
    RetriableError when no broker responds.
    """

    def ask(
        connection: Connection, led: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        version = connection.version_of(produce.API_KEY, "Produce", produce.VERSION_LOW, version_max)
        correlation_id = connection.next_correlation_id()
        chosen = {partition: batches[partition] for partition in led}
        frame = encode_produce_request(
            chosen, settings, version, correlation_id, transactional_id=transactional_id
        )
        timeout_s = settings.connection.request_timeout_s
        response = decode_produce_response(
            connection.ask(frame, "Produce", timeout_s), version, correlation_id
        )
        connection.throttle(response.throttle_s)
        return {
            found.partition: found.base_offset
            if not found.error
            else error_for(
                found.error,
                f"produce to {found.partition}",
                found.message,
                Needed(settings.connection, (Need.WRITE_TOPIC.of(found.partition.topic),)),
            )
            for found in response.partitions
        }

    return cluster.ask_leaders(batches, ask)
