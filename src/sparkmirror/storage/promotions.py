"""Reads and writes promotions in the migrations topic, `mm2-migrations.<source>.internal` on the target.

A promoted topic is no copy any more: applications write it. The record is there before the flow's last
attempts are fenced, and an attempt reads the records after it has claimed: so no attempt writes after the
fence. See docs/decisions/0007.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, FencedError, SparkmirrorError
from sparkmirror.domain.ids import Alias, TopicPartition, decode_topic_id, encode_topic_id
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, unless_missing
from sparkmirror.storage.owned_records import read_owned

_KIND: Final = "promotion"
_ABSENT: Final = -1
_NAMED_MAX: Final = 3


def migration_key(kind: str, owner: str, topic: str) -> bytes:
    """`owner` is that of attempts."""
    return compact_json([kind, [owner, topic]])


def parse_migration_key(key: bytes | None, kind: str) -> tuple[str, str] | None:
    """Owner and topic, None for a record of another kind."""
    match parsed_json(key):
        case [found, [str(owner), str(topic)]] if found == kind:
            return owner, topic
        case _:
            return None


class Stage(Enum):
    STOPPING = "stopping"
    """The flow is stopped for the topic; this can be undone."""
    SWITCHING = "switching"
    """The flow's attempts are being fenced."""
    PROMOTED = "promoted"
    """Applications may write the topic."""


class Parting(NamedTuple):
    """Tells where both logs of a partition part: from `offset` on, the target's records are its own.

    The source ended at `source_end` at that time; None where it was not asked.
    """

    offset: int
    source_end: int | None


class Promotion(NamedTuple):
    """Records the promotion of one topic, named as on the source.

    `target_id` is empty where brokers have none.

    `partings` of its partitions are known at the last stage.
    """

    stage: Stage
    at_ms: int
    target_id: bytes
    partings: Mapping[int, Parting]

    @property
    def word(self) -> str:
        return "promoted" if self.stage is Stage.PROMOTED else "being promoted"

    def of(self, partition: int) -> str:
        """Describe the parting of one partition in words."""
        parting = self.partings.get(partition)
        return self.word if parting is None else f"{self.word}, parted at offset {parting.offset}"

    def __str__(self) -> str:
        if len(self.partings) == 1:
            return self.of(*self.partings)
        named = [f"{number}: {self.partings[number].offset}" for number in sorted(self.partings)]
        rest = len(named) - _NAMED_MAX
        places = ", ".join(named[:_NAMED_MAX]) + (f" and {rest:,} more" if rest > 0 else "")
        return f"{self.word}, parted at offsets {places}" if named else self.word


Promotions = Mapping[str, Promotion]


def promotion_record(owner: str, topic: str, promotion: Promotion | None) -> LogRecord:
    """Make a record; None makes a tombstone: the flow may copy the topic again.

    `owner` is that of attempts.
    """
    key = migration_key(_KIND, owner, topic)
    if promotion is None:
        return LogRecord(key, None)
    return LogRecord(key, compact_json(promotion_value(promotion)))


def promotion_value(promotion: Promotion) -> object:
    """Encode a promotion as JSON."""
    return {
        "stage": promotion.stage.value,
        "at": promotion.at_ms,
        "target": encode_topic_id(promotion.target_id),
        "partings": {str(number): list(each) for number, each in promotion.partings.items()},
    }


def parse_promotion(record: LogRecord) -> tuple[str, str, Promotion | None] | None:
    """Owner, topic and promotion (None for a tombstone); None for a record of another kind.

    A value that can't be read counts as a topic that is being promoted: nothing must be written there.
    """
    place = parse_migration_key(record.key, _KIND)
    if place is None:
        return None
    return *place, None if record.value is None else parse_promotion_value(parsed_json(record.value))


def parse_promotion_value(value: object) -> Promotion:
    """Parse a `promotion_value`; one that can't be read counts as a topic that is being promoted."""
    try:
        match value:
            case {"stage": str(stage), "at": int(at_ms), "target": str(target), "partings": dict(partings)}:
                parted = {
                    int(number): Parting(int(offset), None if end is None else int(end))
                    for number, (offset, end) in partings.items()
                }
                return Promotion(Stage(stage), at_ms, decode_topic_id(target), parted)
    except (ValueError, TypeError):
        pass
    return Promotion(Stage.SWITCHING, 0, b"", {})


def read_promotions(settings: ConnectionSettings, source: Alias, owner: str) -> Promotions:
    """Read the promotions of one connector; none before the first migration. Blocks. Raises KafkaError."""
    topic = StateTopic.MIGRATIONS.of(source)
    return unless_missing(lambda: read_owned(settings, topic, owner, parse_promotion), {})


def promotions_json(promotions: Promotions) -> dict[str, Any]:
    """Return promotions by topic for programs: the word, and the offset of the parting of each partition."""
    return {
        topic: {
            "state": each.word,
            "partings": {str(number): each.partings[number].offset for number in sorted(each.partings)},
        }
        for topic, each in sorted(promotions.items())
    }


class PromotionsReader:
    """Reads the promotions of one connector when there are new ones. One owner."""

    def __init__(
        self, settings: ConnectionSettings, source: Alias, owner: str, *, is_preserving: bool
    ) -> None:
        """`is_preserving`: the flow preserves offsets. Else nothing is promoted, and no right is needed."""
        self._settings = settings
        self._source = source
        self._owner = owner
        self._is_preserving = is_preserving
        self._end = _ABSENT
        self._found: Promotions = {}

    def read(self) -> Promotions:
        """Read news of the topic; what was read stays, also without it. Blocks. Raises KafkaError."""
        try:
            end = self._read_end()
        except AuthorizationError:
            if self._is_preserving:
                raise
            return {}
        if end not in (self._end, _ABSENT):
            self._found, self._end = read_promotions(self._settings, self._source, self._owner), end
        return self._found

    def _read_end(self) -> int:
        partition = TopicPartition(StateTopic.MIGRATIONS.of(self._source), 0)
        end = list_offsets(ConsumerSettings(self._settings), [partition], LATEST)[partition]
        if isinstance(end, SparkmirrorError):
            if end.code == UNKNOWN_TOPIC_OR_PARTITION:
                return _ABSENT
            raise end
        return end


def promoted(
    promotions: Promotions, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, FencedError]:
    """Why the flow may not write some of these partitions."""
    return {
        partition: FencedError(
            f"{partition} is not copied any more: its topic is promoted, applications write it on the target "
            "(sparkmirror promote)"
        )
        for partition in partitions
        if partition.topic in promotions
    }
