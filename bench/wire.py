"""Just enough of Kafka's protocol to move record batches as they are: Fetch 4, Produce 3, ListOffsets 1.

And to let thousands of groups commit: OffsetCommit 2.

Written apart from `sparkmirror.kafka` on purpose: a ceiling that shared the mirror's code would share its
overhead.
"""

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from bench.errors import BenchError

_PRODUCE, _FETCH, _LIST_OFFSETS, _OFFSET_COMMIT = 0, 1, 2, 8
_PRODUCE_VERSION, _FETCH_VERSION, _LIST_OFFSETS_VERSION, _OFFSET_COMMIT_VERSION = 3, 4, 1, 2
_LATEST = -1
_PRODUCE_TIMEOUT_MS = 30_000
_SOCKET_TIMEOUT_S = 60.0
_CLIENT_ID = b"bench"
_BATCH_HEAD = struct.Struct(">qi")
_BATCH_COUNT_AT = 57
_BATCH_FLAGS_AT = 22
_CONTROL_BIT = 0x20
_BATCH_LAST_DELTA = struct.Struct(">i")
_BATCH_LAST_DELTA_AT = 23


@dataclass(frozen=True, slots=True)
class Batch:
    """A stored record batch, ready to be produced: base offset 0 (its checksum does not cover that)."""

    data: bytes
    records: int
    next_offset: int
    is_control: bool = False
    """Whether it is the marker at the end of a transaction."""


def batches_in(records: bytes) -> Iterator[Batch]:
    """The whole batches of a fetched record set; a part at its end is left out."""
    at = 0
    while at + _BATCH_HEAD.size <= len(records):
        base_offset, length = _BATCH_HEAD.unpack_from(records, at)
        end = at + _BATCH_HEAD.size + length
        if end > len(records):
            return
        (count,) = struct.unpack_from(">i", records, at + _BATCH_COUNT_AT)
        (last_delta,) = _BATCH_LAST_DELTA.unpack_from(records, at + _BATCH_LAST_DELTA_AT)
        is_control = bool(records[at + _BATCH_FLAGS_AT] & _CONTROL_BIT)
        yield Batch(bytes(8) + records[at + 8 : end], count, base_offset + last_delta + 1, is_control)
        at = end


def encode_fetch(topic: str, partition: int, offset: int, bytes_max: int) -> bytes:
    """Fetch 4 of one partition; waits up to 500 ms for the first byte."""
    name = topic.encode()
    head = struct.pack(">iiiibi", -1, 500, 1, bytes_max, 0, 1)
    return head + struct.pack(f">h{len(name)}siiqi", len(name), name, 1, partition, offset, bytes_max)


def encode_produce(topic: str, batches: Mapping[int, bytes]) -> list[bytes]:
    """Produce 3, acks=all, one batch a partition; the batches stay separate buffers, for `sendmsg`."""
    name = topic.encode()
    parts = [
        struct.pack(f">hhiih{len(name)}si", -1, -1, _PRODUCE_TIMEOUT_MS, 1, len(name), name, len(batches))
    ]
    for partition, data in batches.items():
        parts += [struct.pack(">ii", partition, len(data)), data]
    return parts


def encode_list_offsets(topic: str, partitions: int) -> bytes:
    """ListOffsets 1 for the ends of partitions 0 to `partitions` - 1."""
    name = topic.encode()
    head = struct.pack(f">iih{len(name)}si", -1, 1, len(name), name, partitions)
    return head + b"".join(struct.pack(">iq", partition, _LATEST) for partition in range(partitions))


def decode_list_offsets(body: bytes) -> list[int]:
    """The offsets of a ListOffsets 1 response to one topic, by partition: brokers answer in any order."""
    (name_length,) = struct.unpack_from(">h", body, 4)
    entries = sorted(struct.iter_unpack(">ihqq", body[10 + name_length :]))
    if codes := {code for _, code, _, _ in entries if code}:
        raise BenchError(f"the broker can't tell the end offsets: errors {sorted(codes)}")
    return [offset for _, _, _, offset in entries]


def produce_errors(body: bytes) -> list[int]:
    """The error codes of a Produce 3 response to one topic."""
    (name_length,) = struct.unpack_from(">h", body, 4)
    at = 6 + name_length
    (partitions,) = struct.unpack_from(">i", body, at)
    entry = struct.Struct(">ihqq")
    codes = (entry.unpack_from(body, at + 4 + index * entry.size)[1] for index in range(partitions))
    return [code for code in codes if code]


def encode_commit(group: str, offsets: Mapping[str, Mapping[int, int]]) -> bytes:
    """OffsetCommit 2 of a group without members: offsets by topic and partition, no metadata."""
    parts = [_short_string(group), struct.pack(">i", -1), _short_string(""), struct.pack(">q", -1)]
    parts.append(struct.pack(">i", len(offsets)))
    for topic, of_topic in offsets.items():
        parts += [_short_string(topic), struct.pack(">i", len(of_topic))]
        parts += (struct.pack(">iqh", partition, offset, 0) for partition, offset in of_topic.items())
    return b"".join(parts)


def commit_errors(body: bytes) -> set[int]:
    """The error codes of an OffsetCommit 2 response."""
    (topics,) = struct.unpack_from(">i", body)
    at, codes = 4, set()
    for _ in range(topics):
        (name_length,) = struct.unpack_from(">h", body, at)
        (partitions,) = struct.unpack_from(">i", body, at + 2 + name_length)
        at += 6 + name_length
        codes |= {code for _, code in struct.iter_unpack(">ih", body[at : at + 6 * partitions])}
        at += 6 * partitions
    return codes - {0}


def _short_string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(f">h{len(encoded)}s", len(encoded), encoded)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The record set of one partition, and where its log ends."""

    records: bytes
    high_watermark: int


def decode_fetched(body: bytes) -> Fetched:
    """A Fetch 4 response to one partition."""
    (name_length,) = struct.unpack_from(">h", body, 8)
    at = 10 + name_length + 4
    _partition, error, high_watermark, _last_stable = struct.unpack_from(">ihqq", body, at)
    if error:
        raise BenchError(f"fetch answered with error {error}")
    (aborted,) = struct.unpack_from(">i", body, at + 22)
    at += 26 + max(aborted, 0) * 16
    (size,) = struct.unpack_from(">i", body, at)
    return Fetched(body[at + 4 : at + 4 + max(size, 0)], high_watermark)


@dataclass(slots=True)
class Wire:
    """One connection; requests are answered in order, so several may be under way."""

    connection: socket.socket
    _correlation: int = field(default=0)

    @classmethod
    def connect(cls, bootstrap: str) -> Self:
        host, _, port = bootstrap.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=_SOCKET_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(connection)

    def close(self) -> None:
        self.connection.close()

    def fetch(self, topic: str, partition: int, offset: int, bytes_max: int = 8 << 20) -> Fetched:
        self._send(_FETCH, _FETCH_VERSION, [encode_fetch(topic, partition, offset, bytes_max)])
        return decode_fetched(self._receive())

    def fetch_and_drop(
        self, topic: str, partition: int, offset: int, bytes_max: int, buffer: bytearray
    ) -> list[int]:
        """Receive whole batches into `buffer` and look at no more than their heads: where each one ends."""
        self._send(_FETCH, _FETCH_VERSION, [encode_fetch(topic, partition, offset, bytes_max)])
        (size,) = struct.unpack(">i", self._read(4))
        body = self._read_into(memoryview(buffer)[:size])
        (name_length,) = struct.unpack_from(">h", body, 12)
        (error,) = struct.unpack_from(">h", body, 14 + name_length + 8)
        if error:
            raise BenchError(f"fetch answered with error {error}")
        (aborted,) = struct.unpack_from(">i", body, 14 + name_length + 26)
        at = 14 + name_length + 30 + max(aborted, 0) * 16 + 4
        ends = []
        while at + _BATCH_LAST_DELTA_AT + 4 <= size:
            base_offset, length = _BATCH_HEAD.unpack_from(body, at)
            (last_delta,) = _BATCH_LAST_DELTA.unpack_from(body, at + _BATCH_LAST_DELTA_AT)
            at += _BATCH_HEAD.size + length
            if at <= size:
                ends.append(base_offset + last_delta + 1)
        return ends

    def end_offsets(self, topic: str, partitions: int) -> list[int]:
        """Return the ends of partitions 0 to `partitions` - 1; raises BenchError while one has no leader."""
        self._send(_LIST_OFFSETS, _LIST_OFFSETS_VERSION, [encode_list_offsets(topic, partitions)])
        return decode_list_offsets(self._receive())

    def send_produce(self, topic: str, batches: Mapping[int, bytes]) -> None:
        self._send(_PRODUCE, _PRODUCE_VERSION, encode_produce(topic, batches))

    def await_produced(self) -> None:
        """The answer to the oldest request under way."""
        if codes := produce_errors(self._receive()):
            raise BenchError(f"produce answered with errors {codes}")

    def send_commit(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        self._send(_OFFSET_COMMIT, _OFFSET_COMMIT_VERSION, [encode_commit(group, offsets)])

    def await_committed(self) -> set[int]:
        """The error codes in the answer to the oldest request under way."""
        return commit_errors(self._receive())

    def _send(self, api: int, version: int, parts: Sequence[bytes]) -> None:
        self._correlation += 1
        header = struct.pack(
            f">hhih{len(_CLIENT_ID)}s", api, version, self._correlation, len(_CLIENT_ID), _CLIENT_ID
        )
        size = len(header) + sum(len(part) for part in parts)
        self._send_all([memoryview(struct.pack(">i", size) + header), *(memoryview(part) for part in parts)])

    def _send_all(self, views: list[memoryview]) -> None:
        while views:
            sent = self.connection.sendmsg(views)
            while views and sent >= len(views[0]):
                sent -= len(views.pop(0))
            if views:
                views[0] = views[0][sent:]

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return bytes(self._read(size)[4:])

    def _read(self, size: int) -> memoryview:
        return self._read_into(memoryview(bytearray(size)))

    def _read_into(self, buffer: memoryview) -> memoryview:
        at = 0
        while at < len(buffer):
            received = self.connection.recv_into(buffer[at:])
            if not received:
                raise BenchError("the broker closed the connection")
            at += received
        return buffer
