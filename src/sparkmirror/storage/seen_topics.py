"""Remembers which topics the source had when a connector first started, in records among its attempts.

`auto.offset.reset` speaks of these. A topic that is not selected is remembered whenever it is seen, so that
it is not taken for a new one when a changed filter selects it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import TopicPartition, decode_topic_id, encode_topic_id, is_another
from sparkmirror.domain.topics import TopicListing
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing

_STARTED = "started"
_SEEN = "seen"


class SeenTopic(NamedTuple):
    """`topic_id` is empty where brokers tell none."""

    partitions: int
    topic_id: bytes = b""


SeenTopics = Mapping[str, SeenTopic]


def listed(listing: TopicListing) -> SeenTopics:
    """The topics of a listing."""
    return {name: SeenTopic(count, listing.topics[name].topic_id) for name, count in listing.counts.items()}


def is_new(partition: TopicPartition, seen: SeenTopics, now: SeenTopics) -> bool:
    """Whether a partition of the topics as they are `now` appeared after it could be `seen`."""
    known = seen.get(partition.topic)
    if known is None or partition.partition >= known.partitions:
        return True
    current = now.get(partition.topic, known)
    return is_another(known.topic_id, current.topic_id)


def seen_records(owner: str, before: SeenTopics | None, now: SeenTopics) -> list[LogRecord]:
    """The records that turn what was remembered into what is to be; the first start's is the last of them."""
    known = before or {}
    records = [
        LogRecord(_key(owner, topic), _value(seen)) for topic, seen in now.items() if known.get(topic) != seen
    ]
    records += [LogRecord(_key(owner, topic), None) for topic in known.keys() - now.keys()]
    return records if before is not None else [*records, LogRecord(_started(owner), b"{}")]


def first_start_forgotten(owner: str) -> LogRecord:
    """The record after which a connector starts as for the first time."""
    return LogRecord(_started(owner), None)


def read_seen_topics(settings: ConnectionSettings, topic: str, owner: str) -> SeenTopics | None:
    """Read what an owner of attempts has seen; None before its first start. Raises KafkaError."""

    def read() -> SeenTopics | None:
        return seen_topics(owner, read_topic(settings, topic))

    return unless_missing(read, None)


def seen_topics(owner: str, records: Iterable[LogRecord]) -> SeenTopics | None:
    """Find what an owner has seen, from records of the topic in its order."""
    found: dict[str, SeenTopic] = {}
    has_started = False
    for record in records:
        match parsed_json(record.key):
            case [str(kind), str(by)] if (kind, by) == (_STARTED, owner):
                has_started = record.value is not None
            case [str(kind), str(by), str(topic)] if (kind, by) == (_SEEN, owner):
                found.pop(topic, None)
                if (seen := _seen(record.value)) is not None:
                    found[topic] = seen
    return found if has_started else None


def _started(owner: str) -> bytes:
    return compact_json([_STARTED, owner])


def _key(owner: str, topic: str) -> bytes:
    return compact_json([_SEEN, owner, topic])


def _value(seen: SeenTopic) -> bytes:
    return compact_json({"partitions": seen.partitions, "id": encode_topic_id(seen.topic_id)})


def _seen(value: bytes | None) -> SeenTopic | None:
    """A value that can't be read is none: the topic counts as new, and nothing of it is left out."""
    match parsed_json(value):
        case {"partitions": int(count), "id": str(topic_id)}:
            try:
                return SeenTopic(count, decode_topic_id(topic_id))
            except ValueError:
                pass
    return None
