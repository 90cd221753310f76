"""Since when topics are missing at the source, in the progress topic: no restart forgets it.

A record for each connector and topic, under keys of their own kind; a tombstone when it is there again.
"""

import json
from collections.abc import Mapping

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.kafka.topic_log import read_topic
from sparkmirror.setup.missed_topics import Missed
from sparkmirror.storage.compact_json import compact_json

_MISSED = "missed"


def missed_record(connector: ConnectorName, topic: str, missed: Missed | None) -> LogRecord:
    """None takes back what was said before."""
    value = None if missed is None else compact_json(missed._asdict())
    return LogRecord(compact_json([_MISSED, connector, topic]), value)


def parse_missed(record: LogRecord) -> tuple[ConnectorName, str, Missed | None] | None:
    """Of which connector and topic it speaks; None for another kind of record."""
    try:
        match json.loads(record.key or b"null"):
            case [kind, str(connector), str(topic)] if kind == _MISSED:
                told = json.loads(record.value or b"null")
                missed = told and Missed(float(told["since"]), float(told["seen_missing"]))
                return ConnectorName(connector), topic, missed or None
    except (ValueError, TypeError, KeyError):
        pass
    return None


def read_missed(settings: ConnectionSettings, topic: str, connector: ConnectorName) -> Mapping[str, Missed]:
    """`topic` is the progress topic. Raises KafkaError, also where it doesn't exist."""
    found: dict[str, Missed] = {}
    for parsed in map(parse_missed, read_topic(settings, topic)):
        if parsed is None or parsed[0] != connector:
            continue
        _, missing, missed = parsed
        found.pop(missing, None)
        if missed is not None:
            found[missing] = missed
    return found
