"""Compares a topic with its mirror, record by record: partition, order, key, value, headers, timestamp.

Streams both sides partition by partition, so that memory does not grow with the topics.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import confluent_kafka as confluent

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import TopicPartition
from tests.support.topic_reader import TopicReader

_SHOWN_BYTES: Final = 60
_TIMESTAMP_TYPES: Final = {
    confluent.TIMESTAMP_NOT_AVAILABLE: "NoTimestampType",
    confluent.TIMESTAMP_CREATE_TIME: "CreateTime",
    confluent.TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two topics part. An offset is None where that side has no record."""

    source: TopicPartition
    target: TopicPartition
    source_offset: int | None
    target_offset: int | None
    what: str

    def __str__(self) -> str:
        source, target = _at(self.source_offset), _at(self.target_offset)
        return f"{self.source} {source} and {self.target} {target}: {self.what}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers of equal records and of the bytes of their keys and values, and the first difference if any."""

    records: int
    bytes: int
    first_difference: Difference | None = None

    def __add__(self, other: "Comparison") -> "Comparison":
        return Comparison(
            self.records + other.records,
            self.bytes + other.bytes,
            self.first_difference or other.first_difference,
        )


@dataclass(frozen=True, slots=True)
class PartitionPair:
    """Two partitions to compare. Timestamps set by the target's broker can't be compared."""

    source: TopicPartition
    target: TopicPartition
    timestamps: bool = True

    def compare(
        self, source_records: Iterable[confluent.Message], target_records: Iterable[confluent.Message]
    ) -> Comparison:
        """Walk both in step until one ends or a record differs."""
        records = bytes_ = 0
        for source, target in zip_longest(source_records, target_records):
            if source is None or target is None or not self._equal(source, target):
                return Comparison(records, bytes_, self._difference(source, target))
            records += 1
            bytes_ += len(source) + len(source.key() or b"")
        return Comparison(records, bytes_)

    def _equal(self, source: confluent.Message, target: confluent.Message) -> bool:
        return (
            source.value() == target.value()
            and source.key() == target.key()
            and (not self.timestamps or _expected_timestamp(source) == target.timestamp())
            and (source.headers() or []) == (target.headers() or [])
        )

    def _difference(self, source: confluent.Message | None, target: confluent.Message | None) -> Difference:
        return Difference(
            self.source,
            self.target,
            None if source is None else source.offset(),
            None if target is None else target.offset(),
            self._what(source, target),
        )

    def _what(self, source: confluent.Message | None, target: confluent.Message | None) -> str:
        if source is None:
            return "the target holds a record that the source does not have"
        if target is None:
            return "the target lacks the record"
        parts = [
            _changed(name, before, after)
            for name, before, after in (
                ("key", source.key(), target.key()),
                ("value", source.value(), target.value()),
                ("headers", source.headers() or [], target.headers() or []),
            )
            if before != after
        ]
        if self.timestamps and _expected_timestamp(source) != target.timestamp():
            parts.append(f"timestamp {_timestamp(source)} became {_timestamp(target)}")
        return ", ".join(parts)


def compare_topic(
    source_bootstrap: str,
    target_bootstrap: str,
    source_topic: str,
    target_topic: str,
    *,
    read_committed: bool = False,
    from_source_offsets: Mapping[int, int] | None = None,
) -> Comparison:
    """Compare everything that both topics hold now, up to the first difference.

    `from_source_offsets` says per partition where the mirror began; others are read from their log start.
    The target is always read whole. With `read_committed` both sides leave aborted transactions out;
    without it aborted records are records like any other, as a mirror sees them. A record's timestamp must
    be the source's, as CreateTime, unless the target topic has `message.timestamp.type=LogAppendTime`.
    Raises KafkaError when the source topic does not exist or a cluster does not answer.
    """
    starts = from_source_offsets or {}
    with (
        TopicReader(source_bootstrap, source_topic, read_committed=read_committed) as source,
        TopicReader(target_bootstrap, target_topic, read_committed=read_committed) as target,
    ):
        source_count, target_count = source.partition_count(), target.partition_count()
        if not source_count:
            raise KafkaError(f"{source_topic} does not exist at {source_bootstrap}")
        if target_count < source_count:
            return Comparison(0, 0, _missing(source_topic, target_topic, target_count, source_count))
        timestamps = not target.is_log_append_time()
        compared = Comparison(0, 0)
        for partition in range(target_count):
            pair = PartitionPair(
                TopicPartition(source_topic, partition), TopicPartition(target_topic, partition), timestamps
            )
            source_records = source.read(partition, starts.get(partition)) if partition < source_count else ()
            compared += pair.compare(source_records, target.read(partition))
            if compared.first_difference:
                break
        return compared


def _missing(source_topic: str, target_topic: str, target_count: int, source_count: int) -> Difference:
    what = f"the target has {target_count} partitions, the source {source_count}"
    return Difference(
        TopicPartition(source_topic, target_count),
        TopicPartition(target_topic, target_count),
        None,
        None,
        what,
    )


def _expected_timestamp(source: confluent.Message) -> tuple[int, int]:
    return confluent.TIMESTAMP_CREATE_TIME, source.timestamp()[1]


def _timestamp(message: confluent.Message) -> str:
    kind, milliseconds = message.timestamp()
    return f"{milliseconds} ({_TIMESTAMP_TYPES.get(kind, kind)})"


def _at(offset: int | None) -> str:
    return "at its end" if offset is None else f"offset {offset}"


def _changed(name: str, before: object, after: object) -> str:
    if isinstance(before, bytes) and isinstance(after, bytes):
        first = _first_unequal(before, after)
        if first > _SHOWN_BYTES // 2:
            begin = first - _SHOWN_BYTES // 4
            return f"{name} from byte {begin} on: {_shown(before[begin:])} became {_shown(after[begin:])}"
    return f"{name} {_shown(before)} became {_shown(after)}"


def _first_unequal(before: bytes, after: bytes) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(before), len(after)))


def _shown(value: object) -> str:
    if isinstance(value, bytes) and len(value) > _SHOWN_BYTES:
        return f"{value[:_SHOWN_BYTES]!r}…"
    return repr(value)
