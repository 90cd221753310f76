"""Records of the state topics (positions, syncs, heartbeats, progress), opened whole.

Mirrored data is never read this way: see `record_batch` and `records`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sparkmirror.domain.compression import CODECS
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.record_batch import CONTROL, FetchedBatch
from sparkmirror.domain.records import RawRecord, read_records, read_varint, write_batch, write_varint

Headers = tuple[tuple[str, bytes | None], ...]

_UNCOMPRESSED = CODECS.index("none")


class LogRecord(NamedTuple):
    """`partition` None lets the key choose (murmur2, as Java); `timestamp_ms` None means now."""

    key: bytes | None
    value: bytes | None
    partition: int | None = 0
    timestamp_ms: int | None = None
    offset: int = -1
    headers: Headers = ()


def encode_log_batch(records: Sequence[LogRecord], now_ms: int) -> memoryview:
    """One uncompressed batch of these records, at least one, to be produced."""
    return write_batch(
        [
            RawRecord(
                at, now_ms if record.timestamp_ms is None else record.timestamp_ms, _encode_body(record)
            )
            for at, record in enumerate(records)
        ],
        _UNCOMPRESSED,
    )


def decode_log_batch(batch: FetchedBatch, partition: int) -> Iterator[LogRecord]:
    """Nothing for a control batch. Raises CorruptBatchError."""
    if batch.header.attributes & CONTROL:
        return
    for record in read_records(batch):
        key, value, headers = _decode_body(record)
        yield LogRecord(key, value, partition, record.timestamp, record.offset, headers)


def _encode_body(record: LogRecord) -> bytes:
    out = bytearray()
    _write_bytes(record.key, out)
    _write_bytes(record.value, out)
    write_varint(len(record.headers), out)
    for name, value in record.headers:
        _write_bytes(name.encode(), out)
        _write_bytes(value, out)
    return bytes(out)


def _decode_body(record: RawRecord) -> tuple[bytes | None, bytes | None, Headers]:
    data = memoryview(record.body)
    try:
        key, at = _read_bytes(data, 0)
        value, at = _read_bytes(data, at)
        count, at = read_varint(data, at)
        headers = []
        for _ in range(count):
            name, at = _read_bytes(data, at)
            header, at = _read_bytes(data, at)
            headers.append((str(name or b"", "utf-8"), header))
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatchError(f"offset {record.offset}: the record's fields do not fit it") from error
    return key, value, tuple(headers)


def _write_bytes(data: bytes | None, out: bytearray) -> None:
    if data is None:
        write_varint(-1, out)
    else:
        write_varint(len(data), out)
        out += data


def _read_bytes(data: memoryview, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise IndexError(at + size)
    return bytes(data[at : at + size]), at + size
