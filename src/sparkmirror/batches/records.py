"""The records inside a batch, opened only as far as copying needs.

Of a record only the timestamp and the offset are ever changed, so key, value and headers stay one run
of bytes, `body`, exactly as the producer wrote it. Layout: Kafka's `DefaultRecord` (KIP-98).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sparkmirror.batches.compression import compress, decompress
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    FetchedBatch,
    OutgoingBatch,
    build_batch,
    iterate_batches,
)
from sparkmirror.domain.errors import CorruptBatchError

_MASK = (1 << 64) - 1
_NO_PRODUCER = (-1, -1, -1)


class RawRecord(NamedTuple):
    """`timestamp` in ms; `body` runs from the key's length to the last header."""

    offset: int
    timestamp: int
    body: bytes


@contextmanager
def naming_offset(offset: int) -> Iterator[None]:
    """A CorruptBatchError raised within gets the place: a batch's base offset, or a record's."""
    try:
        yield
    except CorruptBatchError as error:
        raise CorruptBatchError(f"offset {offset}: {error}") from error


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A zig-zag varint of at most 64 bits at `at`: (value, where the next field begins)."""
    low = data[at]
    if low < 0x80:
        return (low >> 1) ^ -(low & 1), at + 1
    result, shift = low & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            result &= _MASK
            return (result >> 1) ^ -(result & 1), at + 1
        shift += 7
        if shift > 63:
            raise CorruptBatchError("varint is too long")


def write_varint(value: int, out: bytearray) -> None:
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


_SMALL_VARINTS = [_encode_varint(value) for value in range(1024)]
"""Most lengths and deltas are among these."""


def _varint(value: int) -> bytes:
    return _SMALL_VARINTS[value] if 0 <= value < 1024 else _encode_varint(value)


def read_records(batch: FetchedBatch) -> list[RawRecord]:
    """Open a batch. A LogAppendTime batch gives every record the broker's time, as a consumer sees it.

    Raises CorruptBatchError when the bytes do not hold what the header promises.
    """
    header = batch.header
    data = bytes(decompress(header.attributes & CODEC_MASK, batch.data[HEADER_BYTES:]))
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    records = []
    at = 0
    try:
        for _ in range(header.record_count):
            size, at = read_varint(data, at)
            end = at + size
            if size < 0 or end > len(data):
                raise CorruptBatchError(f"record of {size} bytes in a batch of {len(data)}")
            timestamp_delta, at = read_varint(data, at + 1)
            offset_delta, at = read_varint(data, at)
            if at > end:
                raise CorruptBatchError(f"record of {size} bytes is shorter than its fields")
            timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
            records.append(RawRecord(header.base_offset + offset_delta, timestamp, data[at:end]))
            at = end
    except IndexError as error:
        raise CorruptBatchError(f"batch ends before its {header.record_count} records") from error
    if at != len(data):
        raise CorruptBatchError(f"{len(data) - at} bytes follow the batch's {header.record_count} records")
    return records


def write_batch(records: Sequence[RawRecord], codec: int) -> memoryview:
    """One gapless batch of these records (at least one) from offset 0, without a producer's stamp."""
    base_timestamp = records[0].timestamp
    newest = max(record.timestamp for record in records)
    header = new_header(codec, len(records), base_timestamp, newest)
    return build_batch(header, compress(codec, _encode(enumerate(records), base_timestamp)))


def write_sparse_batch(records: Sequence[RawRecord], like: BatchHeader) -> memoryview:
    """A batch of these records of another one, at the offsets that they have there; not compressed."""
    header = like._replace(
        attributes=like.attributes & ~(CODEC_MASK | LOG_APPEND_TIME),
        base_timestamp=records[0].timestamp,
        max_timestamp=max(record.timestamp for record in records),
        record_count=len(records),
    )
    placed = ((record.offset - like.base_offset, record) for record in records)
    return build_batch(header, _encode(placed, header.base_timestamp))


def _encode(placed: Iterable[tuple[int, RawRecord]], base_timestamp: int) -> bytes:
    """Records with their offset deltas."""
    parts: list[bytes] = []
    for delta, record in placed:
        timestamp_delta, offset_delta = _varint(record.timestamp - base_timestamp), _varint(delta)
        size = 1 + len(timestamp_delta) + len(offset_delta) + len(record.body)
        parts += (_varint(size), b"\x00", timestamp_delta, offset_delta, record.body)
    return b"".join(parts)


def new_header(codec: int, count: int, base_timestamp: int, max_timestamp: int) -> BatchHeader:
    """The header of a gapless batch from offset 0, without a producer's stamp."""
    return BatchHeader(0, 0, -1, 2, 0, codec, count - 1, base_timestamp, max_timestamp, *_NO_PRODUCER, count)


def rewrite(records: Sequence[RawRecord], codec: int, bytes_max: int) -> list[OutgoingBatch]:
    """Encode records as batches of at most `bytes_max` bytes each, as far as single records allow it.

    A record above the limit becomes a batch of its own: whether it is accepted is decided by the target.
    """
    if not records:
        return []
    data = write_batch(records, codec)
    if len(data) > bytes_max and len(records) > 1:
        middle = len(records) // 2
        return rewrite(records[:middle], codec, bytes_max) + rewrite(records[middle:], codec, bytes_max)
    newest = max(record.timestamp for record in records)
    first, last = records[0].offset, records[-1].offset
    is_gapless = last - first + 1 == len(records)
    offsets = range(first, last + 1) if is_gapless else tuple(record.offset for record in records)
    return [OutgoingBatch(data, offsets, newest)]


def halve(batch: OutgoingBatch) -> list[OutgoingBatch]:
    """Two batches instead of one that the target calls too large; empty when it holds a single record."""
    if len(batch.offsets) < 2:
        return []
    (fetched,) = iterate_batches(batch.data)
    records = [
        record._replace(offset=offset)
        for record, offset in zip(read_records(fetched), batch.offsets, strict=True)
    ]
    codec, middle = fetched.header.attributes & CODEC_MASK, len(records) // 2
    # By count, not by size: another run of the codec may shrink the whole, and nothing would be split.
    return [
        half
        for part in (records[:middle], records[middle:])
        for half in rewrite(part, codec, len(batch.data))
    ]
