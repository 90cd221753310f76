"""Reads and writes the key, value and headers of a record, which `RawRecord` leaves as one run of bytes.

Layout: Kafka's `DefaultRecord` (KIP-98), from the key's length on.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.batches.records import encode_varint, read_varint
from sparkmirror.domain.errors import CorruptBatchError


class RecordBody(NamedTuple):
    """Names of headers are bytes, because they are not checked to be UTF-8."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def read_body(data: bytes) -> RecordBody:
    """Raises CorruptBatchError when the fields do not fit the bytes."""
    key, at = _read_nullable(data, 0)
    value, at = _read_nullable(data, at)
    count, at = read_varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _read_nullable(data, at)
        content, at = _read_nullable(data, at)
        headers.append((name or b"", content))
    return RecordBody(key, value, tuple(headers))


def read_key(data: bytes) -> bytes | None:
    """Raises CorruptBatchError when it does not fit the bytes."""
    return _read_nullable(data, 0)[0]


def read_to_headers(data: bytes) -> bytes:
    """Return key and value as they are encoded. Raises CorruptBatchError when they do not fit the bytes."""
    return data[: _read_nullable(data, _read_nullable(data, 0)[1])[1]]


def write_body(body: RecordBody) -> bytes:
    return nullable(body.key) + nullable(body.value) + write_headers(body.headers)


def write_headers(headers: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """Encode them with their count."""
    encoded = [nullable(name) + nullable(content) for name, content in headers]
    return b"".join([encode_varint(len(encoded)), *encoded])


def nullable(data: bytes | None) -> bytes:
    """Encode a field with its size."""
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def _read_nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    end = at + size
    if end > len(data):
        raise CorruptBatchError("the record's fields do not fit it")
    return data[at:end], end
