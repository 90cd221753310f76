"""Reads and writes connectors' offsets in Connect's offsets topic, for the REST API (KIP-875)."""

import logging
from collections.abc import Sequence
from contextlib import closing

from sparkmirror.connect.topics.offset_records import OffsetFold, checked_offsets, offset_record
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import ConnectorOffset
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.kafka.data.partition_offsets import await_stable
from sparkmirror.kafka.data.topic_log import TopicWriter, read_topic

_log = logging.getLogger(__name__)


def read_connector_offsets(
    settings: ConnectionSettings, topic: str, connector: str
) -> Sequence[ConnectorOffset]:
    """Return the offset of every source partition that the connector has one for.

    Reads committed records only, and waits for open transactions. Raises KafkaError.
    """
    fold = OffsetFold(connector)
    await_stable(settings, topic)
    for record in read_topic(settings, topic, read_committed=True):
        try:
            fold.take(record)
        except MalformedRecordError as error:
            _log.warning("%s-%s: offset %d is ignored: %s", topic, record.partition, record.offset, error)
    return fold.offsets()


def write_connector_offsets(
    settings: ConnectionSettings,
    topic: str,
    connector: str,
    connector_class: str,
    offsets: Sequence[ConnectorOffset],
) -> None:
    """Alter offsets, or remove those that are None; the connector must not run.

    They lack the producer state that a mirror needs to resume exactly (`positions`), so it starts there with
    a new producer id. Raises ConnectError for offsets that the connector can't use, and writes none then;
    KafkaError.
    """
    records = [offset_record(connector, offset) for offset in checked_offsets(connector_class, offsets)]
    if records:
        with closing(TopicWriter(settings)) as writer:
            writer.write(topic, records)
