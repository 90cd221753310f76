"""Reads and writes offsets that migrations replaced, in `mm2-migrations.<source>.internal` on the target.

A record for each offset that was written for a group, with the offset that it replaced; a tombstone once
that is restored. `storage/promotions.py` and `storage/failbacks.py` have the topic's other records.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.data.topic_log import read_topic


@dataclass(frozen=True, slots=True)
class WrittenOffset:
    """An offset that a migration wrote on the target, and the one before; None if there was none."""

    partition: TopicPartition
    written: int
    earlier: int | None
    earlier_metadata: str = ""


def written_record(group: GroupId, offset: WrittenOffset) -> LogRecord:
    value = {"written": offset.written, "earlier": offset.earlier, "metadata": offset.earlier_metadata}
    return LogRecord(_key(group, offset.partition), compact_json(value))


def restored_record(group: GroupId, partition: TopicPartition) -> LogRecord:
    return LogRecord(_key(group, partition), None)


def parse_written(record: LogRecord) -> tuple[GroupId, TopicPartition, WrittenOffset | None] | None:
    """Parse group, partition and offset (None for a tombstone); None for a record of another kind."""
    try:
        group, topic, partition = parsed_json(record.key)
        place = TopicPartition(str(topic), int(partition))
        if record.value is None:
            return GroupId(group), place, None
        value = parsed_json(record.value)
        earlier = None if value["earlier"] is None else int(value["earlier"])
        written = WrittenOffset(place, int(value["written"]), earlier, str(value["metadata"]))
    except (ValueError, TypeError, KeyError):
        return None
    return GroupId(group), place, written


def read_written(
    settings: ConnectionSettings, topic: str
) -> Mapping[GroupId, Mapping[TopicPartition, WrittenOffset]]:
    """The offsets that were not restored. Raises KafkaError, also for a topic that doesn't exist."""
    found: dict[GroupId, dict[TopicPartition, WrittenOffset]] = {}
    for record in read_topic(settings, topic):
        parsed = parse_written(record)
        if parsed is None:
            continue
        group, partition, written = parsed
        of_group = found.setdefault(group, {})
        of_group.pop(partition, None)
        if written is not None:
            of_group[partition] = written
    return found


def _key(group: GroupId, partition: TopicPartition) -> bytes:
    return compact_json([group, *partition])
