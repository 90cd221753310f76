"""Tells all that the migrations topic of a flow holds."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import Alias, GroupId, LogIdentity, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.storage.failbacks import Failbacks, parse_failback
from sparkmirror.storage.owned_records import newest_of
from sparkmirror.storage.promotions import Promotions, parse_promotion
from sparkmirror.storage.remakes import Remake, parse_remake
from sparkmirror.storage.written_offsets import WrittenOffset, parse_written


class Moved(NamedTuple):
    """The offsets that were written for a group and not restored; the last of them was written at `at_ms`."""

    at_ms: int
    offsets: tuple[WrittenOffset, ...]


class Begun(NamedTuple):
    """A topic that is being created again, since `at_ms`."""

    at_ms: int
    remake: Remake


@dataclass(frozen=True, slots=True)
class Migrations:
    """Topics are named as on the source."""

    groups: Mapping[GroupId, Moved] = field(default_factory=dict)
    promotions: Promotions = field(default_factory=dict)
    failbacks: Failbacks = field(default_factory=dict)
    remakes: Mapping[str, Begun] = field(default_factory=dict)

    def keeps_all(self, topic: str, logs: LogIdentity) -> bool:
        """Whether the flow follows what was promoted before: it copies also what had come from its target."""
        failback = self.failbacks.get(topic)
        return failback is not None and not failback.is_of_another_source(logs)

    def deleted_ids(self, topic: str) -> Collection[bytes]:
        """The ids of its copies that `failback` or `offsets preserve` have deleted, to be recreated."""
        failback, begun = self.failbacks.get(topic), self.remakes.get(topic)
        return [
            *([] if failback is None else [failback.deleted_id]),
            *([] if begun is None else [begun.remake.old_id]),
        ]


def migrations_of(records: Collection[LogRecord], owner: str) -> Migrations:
    """Parse migrations from all records, or from the newest of each key, in the order of writing.

    Topics are those of one connector, whose `owner` is that of attempts; offsets of groups are those of every
    connector of the flow.
    """
    return Migrations(
        _groups(records),
        newest_of(records, owner, parse_promotion),
        newest_of(records, owner, parse_failback),
        newest_of(records, owner, _parse_begun),
    )


def read_migrations(settings: ConnectionSettings, source: Alias, owner: str) -> Migrations:
    """Read migrations; none before the first one. Blocks. Raises KafkaError."""
    topic = StateTopic.MIGRATIONS.of(source)
    return unless_missing(lambda: migrations_of(list(read_topic(settings, topic)), owner), Migrations())


def _parse_begun(record: LogRecord) -> tuple[str, str, Begun | None] | None:
    parsed = parse_remake(record)
    if parsed is None:
        return None
    owner, topic, remake = parsed
    return owner, topic, None if remake is None else Begun(record.timestamp_ms or 0, remake)


def _groups(records: Iterable[LogRecord]) -> dict[GroupId, Moved]:
    newest = newest_of(records, None, _parse_written)
    found: dict[GroupId, Moved] = {}
    for (group, _), (written_ms, offset) in newest.items():
        at_ms, offsets = found.get(group, Moved(0, ()))
        found[group] = Moved(max(at_ms, written_ms), (*offsets, offset))
    return found


def _parse_written(
    record: LogRecord,
) -> tuple[None, tuple[GroupId, TopicPartition], tuple[int, WrittenOffset] | None] | None:
    """Parse a record of any connector."""
    parsed = parse_written(record)
    if parsed is None:
        return None
    group, partition, offset = parsed
    return None, (group, partition), None if offset is None else (record.timestamp_ms or 0, offset)
