"""Remembers between which clusters a connector copies, in a record among its attempts: a restart compares."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing

_CLUSTERS = "clusters"


class ClusterIds(NamedTuple):
    """Kafka's ids of both clusters; empty where one is not known."""

    source: str
    target: str


def cluster_ids_record(owner: str, ids: ClusterIds) -> LogRecord:
    return LogRecord(_key(owner), compact_json(ids._asdict()))


def read_cluster_ids(settings: ConnectionSettings, topic: str, owner: str) -> ClusterIds | None:
    """Read the newest record of an owner of attempts; None without one, or without the topic.

    Raises KafkaError.
    """

    def newest() -> ClusterIds | None:
        found = [record.value for record in read_topic(settings, topic) if record.key == _key(owner)]
        return _parsed(found[-1]) if found else None

    return unless_missing(newest, None)


def recorded_owners(records: Iterable[LogRecord]) -> Iterator[str]:
    """List those who have remembered clusters, with transactions or without."""
    for record in records:
        match parsed_json(record.key):
            case [kind, str(owner)] if kind == _CLUSTERS:
                yield owner


def _key(owner: str) -> bytes:
    return compact_json([_CLUSTERS, owner])


def _parsed(value: bytes | None) -> ClusterIds | None:
    match parsed_json(value):
        case {"source": str(source), "target": str(target)}:
            return ClusterIds(source, target)
        case _:
            return None
