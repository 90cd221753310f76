"""The few wire primitives that the hot path reads and writes by hand (KIP-482 for the compact forms)."""

import struct

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
NO_TAGS = b"\x00"
TOPIC_ID_BYTES = 16
NO_EPOCH = -1
"""The epoch of a leader that is unknown."""
NO_TOPIC_ID = b""
"""The id of a topic whose broker has no ids (before KIP-516, Kafka 2.8)."""
VARINT_SHIFT_MAX = 28
"""The shift of the fifth byte: a 32-bit number has no more, and a longer one would grow with the response."""
UNREADABLE = (IndexError, KeyError, ValueError, OverflowError, struct.error)
"""Raised by decoding where a response ends too early or holds something else."""


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: str, *, compact: bool) -> bytes:
    data = text.encode()
    size = unsigned_varint(len(data) + 1) if compact else INT16.pack(len(data))
    return size + data


def null_string(*, compact: bool) -> bytes:
    return NO_TAGS if compact else INT16.pack(-1)


def array_size(count: int, *, compact: bool) -> bytes:
    return unsigned_varint(count + 1) if compact else INT32.pack(count)


def request_header(
    api_key: int, version: int, correlation_id: int, client_id: str, *, flexible: bool
) -> bytes:
    """Header v1, or v2 for flexible versions; client_id is never a compact string."""
    head = struct.pack(">hhi", api_key, version, correlation_id) + string(client_id, compact=False)
    return head + NO_TAGS if flexible else head


class Reader:
    """Walks over a response; `flexible` chooses the compact forms. One of UNREADABLE is raised at its end."""

    __slots__ = ("at", "data", "flexible")

    def __init__(self, data: memoryview, *, flexible: bool) -> None:
        self.data = data
        self.flexible = flexible
        self.at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def int16(self) -> int:
        return self.unpack(INT16)[0]

    def int32(self) -> int:
        return self.unpack(INT32)[0]

    def unsigned_varint(self) -> int:
        data, at = self.data, self.at
        byte = data[at]
        at += 1
        value = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            if shift > VARINT_SHIFT_MAX:
                raise ValueError("a number has more than 5 bytes")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        self.at = at
        return value

    def array_size(self) -> int:
        """-1 for null."""
        return self.unsigned_varint() - 1 if self.flexible else self.int32()

    def topic_id(self) -> bytes:
        start = self.at
        self.at += TOPIC_ID_BYTES
        return bytes(self.data[start : self.at])

    def bytes(self) -> memoryview | None:
        size = self.array_size()
        if size < 0:
            return None
        start = self.at
        self.at += size
        return self.data[start : self.at]

    def string(self) -> str | None:
        size = self.unsigned_varint() - 1 if self.flexible else self.int16()
        if size < 0:
            return None
        start = self.at
        self.at += size
        return str(self.data[start : self.at], "utf-8")

    def skip_tags(self) -> None:
        """Unknown tagged fields are skipped, as KIP-482 asks."""
        self.tags()

    def tags(self) -> dict[int, memoryview]:
        """The tagged fields that are there, by their numbers."""
        if not self.flexible:
            return {}
        fields = {}
        for _ in range(self.unsigned_varint()):
            tag, size = self.unsigned_varint(), self.unsigned_varint()
            fields[tag] = self.data[self.at : self.at + size]
            self.at += size
        return fields
