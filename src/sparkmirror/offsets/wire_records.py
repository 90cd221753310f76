"""The records of MM2's own topics, byte for byte as Java MM2 writes them (KIP-382).

Fields are big-endian, strings carry a 16-bit length. Readers ignore bytes that follow the last field and
read any version as version 0, the only one there is, as in Java.
"""

import struct
from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition

_VERSION: Final = 0
_STRING_BYTES_MAX: Final = 32767

_LENGTH: Final = struct.Struct(">h")
_PARTITION: Final = struct.Struct(">i")
_OFFSETS: Final = struct.Struct(">qq")
_VERSIONED_OFFSETS: Final = struct.Struct(">hqq")
_VERSIONED_TIMESTAMP: Final = struct.Struct(">hq")


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """A source offset and where that record is on the target. `topic_partition` is the source's."""

    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int

    def encode_key(self) -> bytes:
        return _string(self.topic_partition.topic) + _PARTITION.pack(self.topic_partition.partition)

    def encode_value(self) -> bytes:
        return _OFFSETS.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> "OffsetSync":
        """Raises MalformedRecordError for bytes that end too early."""
        topic, at = _read_string(key, 0)
        (partition,) = _read(_PARTITION, key, at)
        upstream, downstream = _read(_OFFSETS, value, 0)
        return cls(TopicPartition(topic, partition), upstream, downstream)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group's committed offset, translated. `topic_partition` is the target's."""

    group: GroupId
    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int
    metadata: str | None = None
    """The empty string on the wire if it is None, and read back as such."""

    def encode_key(self) -> bytes:
        topic, partition = self.topic_partition
        return _string(self.group) + _string(topic) + _PARTITION.pack(partition)

    def encode_value(self) -> bytes:
        offsets = _VERSIONED_OFFSETS.pack(_VERSION, self.upstream_offset, self.downstream_offset)
        return offsets + _string(self.metadata or "")

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> "Checkpoint":
        """Raises MalformedRecordError for bytes that end too early."""
        group, at = _read_string(key, 0)
        topic, at = _read_string(key, at)
        (partition,) = _read(_PARTITION, key, at)
        _, upstream, downstream = _read(_VERSIONED_OFFSETS, value, 0)
        metadata, _ = _read_string(value, _VERSIONED_OFFSETS.size)
        return cls(GroupId(group), TopicPartition(topic, partition), upstream, downstream, metadata)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life of one flow; `timestamp_ms` is milliseconds since the epoch."""

    flow: Flow
    timestamp_ms: int

    def encode_key(self) -> bytes:
        return _string(self.flow.source) + _string(self.flow.target)

    def encode_value(self) -> bytes:
        return _VERSIONED_TIMESTAMP.pack(_VERSION, self.timestamp_ms)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> "Heartbeat":
        """Raises MalformedRecordError for bytes that end too early."""
        source, at = _read_string(key, 0)
        target, _ = _read_string(key, at)
        _, timestamp_ms = _read(_VERSIONED_TIMESTAMP, value, 0)
        return cls(Flow(Alias(source), Alias(target)), timestamp_ms)


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _STRING_BYTES_MAX:
        raise MalformedRecordError(f"a string of {len(encoded)} bytes; Kafka allows {_STRING_BYTES_MAX}")
    return _LENGTH.pack(len(encoded)) + encoded


def _read(layout: struct.Struct, buffer: bytes, at: int) -> tuple[int, ...]:
    if len(buffer) < at + layout.size:
        raise MalformedRecordError(f"record ends at byte {len(buffer)}, needs {at + layout.size}")
    return layout.unpack_from(buffer, at)


def _read_string(buffer: bytes, at: int) -> tuple[str, int]:
    (length,) = _read(_LENGTH, buffer, at)
    start = at + _LENGTH.size
    if length < 0 or len(buffer) < start + length:
        raise MalformedRecordError(f"string of {length} bytes at byte {at} of {len(buffer)}")
    return buffer[start : start + length].decode(errors="replace"), start + length
