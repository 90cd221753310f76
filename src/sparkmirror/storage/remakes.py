"""Reads and writes remakes in the migrations topic, `mm2-migrations.<source>.internal` on the target.

A topic that was mirrored with other offsets is deleted on the target and recreated with its source's. The
brokers forget then where groups were: the record remembers it, in offsets of the source, until these are
written. See docs/decisions/0010.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.ids import GroupId, decode_topic_id, encode_topic_id
from sparkmirror.storage.promotions import migration_key, parse_migration_key

_KIND: Final = "remake"


class Remembered(NamedTuple):
    """Remembers a group's place in one partition: an offset of the source, and the group's metadata."""

    group: GroupId
    partition: int
    offset: int
    metadata: str


class Remake(NamedTuple):
    """Records the recreation of one topic, named as on the source.

    `old_id` is the deleted topic on the target.

    It is recreated with as many `partitions`, and with the `configs` that were set for it. `ends` are those
    of the source's partitions when that was decided.
    """

    old_id: bytes
    partitions: int
    configs: Mapping[str, str]
    ends: Mapping[int, int]
    groups: tuple[Remembered, ...]


def remake_record(owner: str, topic: str, remake: Remake | None) -> LogRecord:
    """Make a record; None makes a tombstone: the recreation is done. `owner` is that of attempts."""
    key = migration_key(_KIND, owner, topic)
    if remake is None:
        return LogRecord(key, None)
    value = {
        "old": encode_topic_id(remake.old_id),
        "partitions": remake.partitions,
        "configs": dict(remake.configs),
        "ends": {str(number): end for number, end in remake.ends.items()},
        "groups": [list(each) for each in remake.groups],
    }
    return LogRecord(key, compact_json(value))


def parse_remake(record: LogRecord) -> tuple[str, str, Remake | None] | None:
    """Owner, topic and remake (None for a tombstone, or what can't be read); None for another kind."""
    place = parse_migration_key(record.key, _KIND)
    return None if place is None else (*place, None if record.value is None else _remake(record.value))


def _remake(value: bytes) -> Remake | None:
    try:
        match parsed_json(value):
            case {
                "old": str(old),
                "partitions": int(partitions),
                "configs": dict(configs),
                "ends": dict(ends),
                "groups": list(groups),
            }:
                remembered = [
                    Remembered(GroupId(str(group)), int(number), int(offset), str(metadata))
                    for group, number, offset, metadata in groups
                ]
                return Remake(
                    decode_topic_id(old),
                    partitions,
                    {str(name): str(each) for name, each in configs.items()},
                    {int(number): int(end) for number, end in ends.items()},
                    tuple(remembered),
                )
    except (ValueError, TypeError):
        pass
    return None
