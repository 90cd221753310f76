"""The migrations topic, `mm2-migrations.<source>.internal` on the target: what migrations wrote there.

Made by the first one. Compacted, one partition, a record for each offset that was written for a group, with
the one that it replaced, so that it can be restored; a tombstone where that was done.
"""

import json
from collections.abc import Mapping

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import Alias, GroupId, TopicPartition
from sparkmirror.kafka.topic_log import read_topic
from sparkmirror.migrate.group_moves import WrittenOffset
from sparkmirror.storage.compact_json import compact_json


def migrations_topic(source: Alias) -> str:
    """Named like Connect's own topics in dedicated mode, so that MM2's filters leave it alone (KIP-1074)."""
    return f"mm2-migrations.{source}.internal"


def written_record(group: GroupId, offset: WrittenOffset) -> LogRecord:
    value = {"written": offset.written, "earlier": offset.earlier, "metadata": offset.earlier_metadata}
    return LogRecord(_key(group, offset.partition), compact_json(value))


def restored_record(group: GroupId, partition: TopicPartition) -> LogRecord:
    return LogRecord(_key(group, partition), None)


def parse_written(record: LogRecord) -> tuple[GroupId, TopicPartition, WrittenOffset | None] | None:
    """Of which group and partition it speaks, with None for a tombstone; None for what is none of ours."""
    try:
        group, topic, partition = json.loads(record.key or b"null")
        place = TopicPartition(str(topic), int(partition))
        if record.value is None:
            return GroupId(group), place, None
        told = json.loads(record.value)
        earlier = None if told["earlier"] is None else int(told["earlier"])
        written = WrittenOffset(place, int(told["written"]), earlier, str(told["metadata"]))
    except (ValueError, TypeError, KeyError):
        return None
    return GroupId(group), place, written


def read_written(
    settings: ConnectionSettings, topic: str
) -> Mapping[GroupId, Mapping[TopicPartition, WrittenOffset]]:
    """What is not taken back. Raises KafkaError, also for a topic that doesn't exist."""
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
