"""Encodes Produce requests, v7 to v11 (Kafka 2.1 and newer), without copying batches; decodes responses.

v12 has the same bytes; it adds partitions to the transaction by itself (KIP-890).
A request holds at most one batch per partition; a broker silently drops the first of two.
"""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.primitives import (
    INT32,
    NO_TAGS,
    UNREADABLE,
    Reader,
    array_size,
    null_string,
    request_header,
    string,
    unsigned_varint,
)

API_KEY = 0
VERSION_LOW, VERSION_HIGH = 7, 11
VERSION_ADDING_PARTITIONS = 12
"""The version for transactions of version 2 only: under version 1 nothing above v11 may be sent."""

VERSION_BY_ID = 13
"""Names topics by their ids (KIP-516): no other topic of the same name gets the records."""

_FLEXIBLE_FROM = 9
_RECORD_ERRORS_FROM = 8
_PARTITION_RESULT = struct.Struct(">ihqqq")  # partition, error, base offset, append time, log start


class ProducedPartition(NamedTuple):
    """A partition of a response. `message` is the broker's own text, if it sent one."""

    partition: TopicPartition
    error: int
    base_offset: int
    message: str | None


class ProduceResponse(NamedTuple):
    throttle_s: float
    partitions: list[ProducedPartition]


def encode_produce_request(
    batches: Mapping[TopicPartition, memoryview],
    settings: ProducerSettings,
    version: int,
    correlation_id: int,
    *,
    transactional_id: str | None = None,
    topic_ids: Mapping[TopicPartition, bytes] = MappingProxyType({}),
) -> list[bytes | memoryview]:
    """The frame to send, as buffers; the batches themselves are not copied.

    `transactional_id` is for batches with the transactional bit, and all of them must have it. `topic_ids`
    has that of each partition's topic, for VERSION_BY_ID.
    """
    compact = version >= _FLEXIBLE_FROM
    connection = settings.connection
    head = [
        request_header(API_KEY, version, correlation_id, connection.client_id, flexible=compact),
        null_string(compact=compact)
        if transactional_id is None
        else string(transactional_id, compact=compact),
        struct.pack(">hi", settings.acks, int(settings.followers_timeout_s * 1000)),
    ]
    frame: list[bytes | memoryview] = [b"".join(head), *_encode_topics(batches, version, topic_ids)]
    frame.insert(0, INT32.pack(sum(map(len, frame))))
    return frame


def _encode_topics(
    batches: Mapping[TopicPartition, memoryview], version: int, topic_ids: Mapping[TopicPartition, bytes]
) -> Sequence[bytes | memoryview]:
    compact = version >= _FLEXIBLE_FROM
    by_topic: dict[str | bytes, list[tuple[int, memoryview]]] = {}
    for to, batch in batches.items():
        topic = topic_ids[to] if version >= VERSION_BY_ID else to.topic
        by_topic.setdefault(topic, []).append((to.partition, batch))
    tags = NO_TAGS if compact else b""
    parts: list[bytes | memoryview] = [array_size(len(by_topic), compact=compact)]
    for topic, partitions in by_topic.items():
        name = topic if isinstance(topic, bytes) else string(topic, compact=compact)
        opening = name + array_size(len(partitions), compact=compact)
        for partition, data in partitions:
            size = unsigned_varint(len(data) + 1) if compact else INT32.pack(len(data))
            parts += [opening + INT32.pack(partition) + size, data]
            opening = tags
        parts.append(tags + tags)
    parts.append(tags)
    return parts


def decode_produce_response(
    frame: memoryview, version: int, correlation_id: int, topics: Mapping[bytes, str] = MappingProxyType({})
) -> ProduceResponse:
    """Raises DisconnectedError when the frame is not the response to that request.

    `topics` has the names of topics that were written to by id.
    """
    reader = Reader(frame, flexible=version >= _FLEXIBLE_FROM)
    try:
        if reader.int32() != correlation_id:
            raise DisconnectedError("produce responses arrive out of order")
        reader.skip_tags()
        partitions = _decode_topics(reader, version, topics)
        throttle_ms = reader.int32()
    except UNREADABLE as cause:
        raise DisconnectedError("a produce response ends too early, or is about other topics") from cause
    return ProduceResponse(throttle_ms / 1000, partitions)


def _decode_topics(reader: Reader, version: int, topics: Mapping[bytes, str]) -> list[ProducedPartition]:
    partitions = []
    for _ in range(reader.array_size()):
        topic = topics[reader.topic_id()] if version >= VERSION_BY_ID else reader.string() or ""
        partitions += [_decode_partition(reader, topic, version) for _ in range(reader.array_size())]
        reader.skip_tags()
    return partitions


def _decode_partition(reader: Reader, topic: str, version: int) -> ProducedPartition:
    partition, error, base_offset, _, _ = reader.unpack(_PARTITION_RESULT)
    message = None
    if version >= _RECORD_ERRORS_FROM:
        for _ in range(max(reader.array_size(), 0)):
            reader.int32()
            message = reader.string() or message
            reader.skip_tags()
        message = reader.string() or message
    reader.skip_tags()
    return ProducedPartition(TopicPartition(topic, partition), error, base_offset, message)
