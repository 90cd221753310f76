"""Defines failbacks: records in the migrations topic, `mm2-migrations.<source>.internal` on the target.

After a promotion the opposite flow may continue where both logs part. The record says what its target holds
by then, which counts as copied by the flow. It ends an earlier promotion of that flow. See
docs/decisions/0008-fail-back.md.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.ids import LogIdentity, decode_topic_id, encode_topic_id, is_another
from sparkmirror.storage.promotions import (
    Promotion,
    migration_key,
    parse_migration_key,
    parse_promotion_value,
    promotion_value,
)

_KIND: Final = "failback"


class Failback(NamedTuple):
    """Records the failback of one topic, named as on the flow's source.

    `answers` is the time of the opposite flow's promotion behind which this flow continues. `logs` are the
    topics on both sides at that time; the target's id is empty where it is recreated. `beginnings` are the
    offsets of partitions before which the target's log was written by others, or by this flow before its
    `ended` promotion. `deleted_id` is the topic on the target that had other records, and is deleted.
    """

    answers: int
    at_ms: int
    logs: LogIdentity
    beginnings: Mapping[int, int]
    ended: Promotion | None = None
    deleted_id: bytes = b""

    def accepted(self, partition: int, logs: LogIdentity) -> int:
        """Return the offset below which the target's log counts as the flow's own; 0 in recreated topics."""
        is_other = self.is_of_another_source(logs) or is_another(self.logs.target_id, logs.target_id)
        return 0 if is_other else self.beginnings.get(partition, 0)

    def is_of_another_source(self, logs: LogIdentity) -> bool:
        return is_another(self.logs.source_id, logs.source_id)


Failbacks = Mapping[str, Failback]


def failback_record(owner: str, topic: str, failback: Failback | None) -> LogRecord:
    """Make a record; None makes a tombstone, which rolls the failback back. `owner` is that of attempts."""
    key = migration_key(_KIND, owner, topic)
    if failback is None:
        return LogRecord(key, None)
    value = {
        "answers": failback.answers,
        "at": failback.at_ms,
        "source": encode_topic_id(failback.logs.source_id),
        "target": encode_topic_id(failback.logs.target_id),
        "beginnings": {str(number): offset for number, offset in failback.beginnings.items()},
        "ended": None if failback.ended is None else promotion_value(failback.ended),
        "deleted": encode_topic_id(failback.deleted_id),
    }
    return LogRecord(key, compact_json(value))


def parse_failback(record: LogRecord) -> tuple[str, str, Failback | None] | None:
    """Owner, topic and failback (None for a tombstone, or what can't be read); None for another kind."""
    place = parse_migration_key(record.key, _KIND)
    return None if place is None else (*place, None if record.value is None else _failback(record.value))


def _failback(value: bytes) -> Failback | None:
    try:
        match parsed_json(value):
            case {
                "answers": int(answers),
                "at": int(at_ms),
                "source": str(source),
                "target": str(target),
                "beginnings": dict(beginnings),
                "ended": ended,
                "deleted": str(deleted),
            }:
                return Failback(
                    answers,
                    at_ms,
                    LogIdentity(decode_topic_id(source), -1, decode_topic_id(target)),
                    {int(number): int(offset) for number, offset in beginnings.items()},
                    None if ended is None else parse_promotion_value(ended),
                    decode_topic_id(deleted),
                )
    except (ValueError, TypeError):
        pass
    return None
