"""Encodes and decodes Fetch, v10 to v13 (Kafka 2.1 and newer), with fetch sessions (KIP-227).

From v12 on a response has the offset where the log diverges from the one that was read (KIP-595); v13 names
topics by id (KIP-516), so that no other topic of the same name is read.

A response's record batches are not copied out of the frame: `FetchedPartition.records` is a view.
"""

import struct
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.primitives import (
    INT32,
    NO_EPOCH,
    NO_TAGS,
    NO_TOPIC_ID,
    UNREADABLE,
    Reader,
    array_size,
    request_header,
    string,
)

API_KEY = 1
VERSION_LOW, VERSION_HIGH = 10, 13
VERSION_HIGH_BY_NAME = 12
_FLEXIBLE_FROM = 12
_BY_ID_FROM = 13
_RACK_FROM = 11
_EPOCH_MAX = 0x7FFFFFFF
_HEAD = struct.Struct(">iiiibii")  # replica, max wait, min bytes, max bytes, isolation, session id and epoch
_ERROR_AND_OFFSETS = struct.Struct(">ihqqq")  # partition, error, high watermark, last stable, log start
_ABORTED = struct.Struct(">qq")
_THROTTLE_ERROR_SESSION = struct.Struct(">ihi")
_EPOCH_AND_OFFSET = struct.Struct(">iq")
_DIVERGING_EPOCH_TAG = 0


class SessionStep(NamedTuple):
    """The part of a request about its session: the epoch, and partitions to remove from the session.

    `forgotten` has each with the topic id that it was added under.
    """

    session_id: int
    epoch: int
    forgotten: Collection[tuple[TopicPartition, bytes]] = ()


NO_SESSION = SessionStep(0, -1)
"""The session id of a request without a session, for which the broker keeps no state."""


class FetchPosition(NamedTuple):
    """`read_epoch` is the leader epoch that the record before was read in, NO_EPOCH if unknown."""

    offset: int
    leader_epoch: int
    bytes_max: int
    read_epoch: int = NO_EPOCH
    topic_id: bytes = NO_TOPIC_ID


class FetchedPartition(NamedTuple):
    """A partition of a response. `aborted` holds (producer id, first offset) under read_committed.

    `diverged_at` is the first offset with another record than the one that was read, None if none;
    `diverging_epoch` is the leader epoch of what is before it.
    """

    partition: TopicPartition
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    preferred_read_replica: int
    records: memoryview
    diverged_at: int | None = None
    diverging_epoch: int = -1


class FetchResponse(NamedTuple):
    throttle_s: float
    error: int
    session_id: int
    partitions: list[FetchedPartition]


class FetchSession:
    """The fetch session of one broker (KIP-227): a request names only what changed since the last one.

    `want` and `drop` note changes; `request` turns them into a request and takes them as known to the
    broker. After a lost session or connection, `reset` makes the next request a full one.
    """

    def __init__(self) -> None:
        self._wanted: dict[TopicPartition, FetchPosition] = {}
        self._changed: set[TopicPartition] = set()
        self._forgotten: set[tuple[TopicPartition, bytes]] = set()
        self.topics: dict[bytes, str] = {}
        """The names of the topics that were requested by id."""
        self._id = 0
        self._epoch = 0

    def __len__(self) -> int:
        return len(self._wanted)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._wanted

    def want(self, partition: TopicPartition, position: FetchPosition) -> bool:
        """Whether that changes anything."""
        before = self._wanted.get(partition)
        if before == position:
            return False
        if before is not None and before.topic_id != position.topic_id:
            self._forgotten.add((partition, before.topic_id))
        self._wanted[partition] = position
        self._changed.add(partition)
        self.topics[position.topic_id] = partition.topic
        return True

    def drop(self, partition: TopicPartition) -> None:
        position = self._wanted.pop(partition, None)
        if position is not None:
            self._changed.discard(partition)
            self._forgotten.add((partition, position.topic_id))

    def reset(self) -> None:
        self._id = self._epoch = 0
        self._changed = set(self._wanted)
        self._forgotten.clear()

    def accept(self, session_id: int) -> None:
        """A response without an error arrived."""
        self._id = session_id
        self._epoch = next_epoch(self._epoch)
        if session_id == 0:  # the broker's session cache is full
            self.reset()

    def request(
        self, settings: ConsumerSettings, version: int, correlation_id: int, bytes_max: int
    ) -> list[bytes]:
        """The frame to send; at most `bytes_max` bytes are requested, though one batch may exceed it."""
        changed = {partition: self._wanted[partition] for partition in self._changed}
        # A partition that was dropped and wanted again since the last request is only a change.
        wanted = {(partition, position.topic_id) for partition, position in changed.items()}
        forgotten = self._forgotten - wanted if self._epoch else set()
        self._changed.clear()
        self._forgotten.clear()
        return encode_fetch_request(
            changed,
            settings,
            version,
            correlation_id,
            bytes_max,
            SessionStep(self._id, self._epoch, forgotten),
        )

    def request_alone(
        self,
        partitions: Iterable[TopicPartition],
        settings: ConsumerSettings,
        version: int,
        correlation_id: int,
        bytes_max: int,
    ) -> list[bytes]:
        """The frame to fetch only some of the partitions; the session does not change."""
        wanted = {partition: self._wanted[partition] for partition in partitions}
        return encode_fetch_request(wanted, settings, version, correlation_id, bytes_max)


def next_epoch(epoch: int) -> int:
    """A session's next epoch, as Kafka's `FetchMetadata.nextEpoch` has it: 0 would ask for a new session."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1


def encode_fetch_request(
    wanted: Mapping[TopicPartition, FetchPosition],
    settings: ConsumerSettings,
    version: int,
    correlation_id: int,
    bytes_max: int,
    session: SessionStep = NO_SESSION,
) -> list[bytes]:
    """The frame to send; at most `bytes_max` bytes are requested, though one batch may exceed it."""
    compact = version >= _FLEXIBLE_FROM
    body = [
        request_header(API_KEY, version, correlation_id, settings.connection.client_id, flexible=compact),
        _HEAD.pack(
            -1,
            int(settings.fetch_wait_max_s * 1000),
            settings.fetch_bytes_min,
            min(settings.fetch_bytes_max, bytes_max),
            int(settings.read_committed),
            session.session_id,
            session.epoch,
        ),
        _encode_wanted(wanted, version),
        _encode_forgotten(session.forgotten, version),
    ]
    if version >= _RACK_FROM:
        body.append(string(settings.client_rack, compact=compact))
    if compact:
        body.append(NO_TAGS)
    return [INT32.pack(sum(map(len, body))), *body]


def _by_topic(
    partitions: Iterable[tuple[TopicPartition, bytes]], version: int
) -> Mapping[bytes, list[TopicPartition]]:
    """The partitions by their topics' encoded names, or ids."""
    topics: dict[bytes, list[TopicPartition]] = {}
    for partition, topic_id in partitions:
        by_id = version >= _BY_ID_FROM
        name = topic_id if by_id else string(partition.topic, compact=version >= _FLEXIBLE_FROM)
        topics.setdefault(name, []).append(partition)
    return topics


def _encode_wanted(wanted: Mapping[TopicPartition, FetchPosition], version: int) -> bytes:
    compact = version >= _FLEXIBLE_FROM
    tags = NO_TAGS if compact else b""
    topics = _by_topic(((partition, position.topic_id) for partition, position in wanted.items()), version)
    parts = [array_size(len(topics), compact=compact)]
    for topic, partitions in topics.items():
        parts += [topic, array_size(len(partitions), compact=compact)]
        for partition in partitions:
            position = wanted[partition]
            parts.append(struct.pack(">iiq", partition.partition, position.leader_epoch, position.offset))
            if compact:
                parts.append(INT32.pack(position.read_epoch))
            parts += [struct.pack(">qi", -1, position.bytes_max), tags]
        parts.append(tags)
    return b"".join(parts)


def _encode_forgotten(forgotten: Iterable[tuple[TopicPartition, bytes]], version: int) -> bytes:
    compact = version >= _FLEXIBLE_FROM
    topics = _by_topic(forgotten, version)
    parts = [array_size(len(topics), compact=compact)]
    for topic, partitions in topics.items():
        parts += [topic, array_size(len(partitions), compact=compact)]
        parts += [INT32.pack(partition.partition) for partition in partitions]
        parts.append(NO_TAGS if compact else b"")
    return b"".join(parts)


def decode_fetch_response(
    frame: memoryview, version: int, correlation_id: int, topics: Mapping[bytes, str] = MappingProxyType({})
) -> FetchResponse:
    """Raises DisconnectedError when the frame is not the response to that request.

    `topics` has the names of topics that were requested by id.
    """
    reader = Reader(frame, flexible=version >= _FLEXIBLE_FROM)
    try:
        if reader.int32() != correlation_id:
            raise DisconnectedError("fetch responses arrive out of order")
        reader.skip_tags()
        throttle_ms, error, session_id = reader.unpack(_THROTTLE_ERROR_SESSION)
        partitions = _decode_topics(reader, version, topics)
    except UNREADABLE as cause:
        raise DisconnectedError("a fetch response ends too early, or is about other topics") from cause
    return FetchResponse(throttle_ms / 1000, error, session_id, partitions)


def _decode_topics(reader: Reader, version: int, topics: Mapping[bytes, str]) -> list[FetchedPartition]:
    partitions = []
    for _ in range(reader.array_size()):
        topic = topics[reader.topic_id()] if version >= _BY_ID_FROM else reader.string() or ""
        partitions += [_decode_partition(reader, topic, version) for _ in range(reader.array_size())]
        reader.skip_tags()
    return partitions


def _decode_partition(reader: Reader, topic: str, version: int) -> FetchedPartition:
    partition, error, high_watermark, last_stable, log_start = reader.unpack(_ERROR_AND_OFFSETS)
    aborted = []
    for _ in range(max(reader.array_size(), 0)):
        producer_id, first_offset = reader.unpack(_ABORTED)
        aborted.append((producer_id, first_offset))
        reader.skip_tags()
    preferred = reader.int32() if version >= _RACK_FROM else -1
    records = reader.bytes()
    diverging = reader.tags().get(_DIVERGING_EPOCH_TAG)
    return FetchedPartition(
        TopicPartition(topic, partition),
        error,
        high_watermark,
        last_stable,
        log_start,
        aborted,
        preferred,
        memoryview(b"") if records is None else records,
        *((None, -1) if diverging is None else reversed(_EPOCH_AND_OFFSET.unpack_from(diverging))),
    )
