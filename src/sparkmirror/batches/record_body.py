"""Reads and writes the key, value and headers of a record, which `RawRecord` leaves as one run of bytes.

Layout: Kafka's `DefaultRecord` (KIP-98), from the key's length on.
"""

from typing import NamedTuple

from sparkmirror.batches.records import read_varint, write_varint
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


def write_body(body: RecordBody) -> bytes:
    out = bytearray()
    _write_nullable(body.key, out)
    _write_nullable(body.value, out)
    write_varint(len(body.headers), out)
    for name, content in body.headers:
        _write_nullable(name, out)
        _write_nullable(content, out)
    return bytes(out)


def _read_nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    end = at + size
    if end > len(data):
        raise CorruptBatchError("the record's fields do not fit it")
    return data[at:end], end


def _write_nullable(data: bytes | None, out: bytearray) -> None:
    if data is None:
        write_varint(-1, out)
    else:
        write_varint(len(data), out)
        out += data
