"""The records inside a batch, opened only as far as copying needs.

Of a record only the timestamp and the offset are ever changed, so the rest (key, value, headers) stays one
run of bytes, `body`, exactly as the producer wrote it. Layout: Kafka's `DefaultRecord` (KIP-98).
"""

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.domain.compression import compress, decompress
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    FetchedBatch,
    OutgoingBatch,
    build_batch,
    iterate_batches,
)

_NO_PRODUCER = (-1, -1, -1)


class RawRecord(NamedTuple):
    """`timestamp` in ms; `body` runs from the key's length to the last header."""

    offset: int
    timestamp: int
    body: bytes


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """A zig-zag varint of at most 64 bits at `at`: (value, where the next field begins)."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
        if shift > 63:
            raise CorruptBatchError("varint is too long")


def write_varint(value: int, out: bytearray) -> None:
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def read_records(batch: FetchedBatch) -> list[RawRecord]:
    """Open a batch. A LogAppendTime batch gives every record the broker's time, as a consumer sees it.

    Raises CorruptBatchError when the bytes do not hold what the header promises.
    """
    header = batch.header
    data = decompress(header.attributes & CODEC_MASK, batch.data[HEADER_BYTES:])
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
            timestamp = _timestamp(header, timestamp_delta)
            records.append(RawRecord(header.base_offset + offset_delta, timestamp, bytes(data[at:end])))
            at = end
    except IndexError as error:
        raise CorruptBatchError(f"batch ends before its {header.record_count} records") from error
    if at != len(data):
        raise CorruptBatchError(f"{len(data) - at} bytes follow the batch's {header.record_count} records")
    return records


def _timestamp(header: BatchHeader, delta: int) -> int:
    return header.max_timestamp if header.attributes & LOG_APPEND_TIME else header.base_timestamp + delta


def write_batch(records: Sequence[RawRecord], codec: int) -> memoryview:
    """One gapless batch of these records (at least one) from offset 0, without a producer's stamp."""
    base_timestamp = records[0].timestamp
    payload = bytearray()
    for delta, record in enumerate(records):
        fields = bytearray(b"\x00")
        write_varint(record.timestamp - base_timestamp, fields)
        write_varint(delta, fields)
        write_varint(len(fields) + len(record.body), payload)
        payload += fields
        payload += record.body
    max_timestamp = max(record.timestamp for record in records)
    last = len(records) - 1
    header = BatchHeader(
        0, 0, -1, 2, 0, codec, last, base_timestamp, max_timestamp, *_NO_PRODUCER, len(records)
    )
    return build_batch(header, compress(codec, bytes(payload)))


def rewrite(records: Sequence[RawRecord], codec: int, bytes_max: int) -> list[OutgoingBatch]:
    """Encode records as batches of at most `bytes_max` bytes each, as far as single records allow it.

    A record above the limit becomes a batch of its own: whether the target takes it is the target's to say.
    """
    if not records:
        return []
    data = write_batch(records, codec)
    if len(data) > bytes_max and len(records) > 1:
        middle = len(records) // 2
        return rewrite(records[:middle], codec, bytes_max) + rewrite(records[middle:], codec, bytes_max)
    newest = max(record.timestamp for record in records)
    return [OutgoingBatch(data, tuple(record.offset for record in records), newest)]


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
