"""The records inside a batch, opened only as far as copying needs.

Only the timestamp and the offset of a record are ever changed, so key, value and headers stay one run
of bytes, `body`, exactly as the producer wrote it. Layout: Kafka's `DefaultRecord` (KIP-98).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from sparkmirror.batches.compression import compress, decompress_together
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
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError

_INT_MASK = (1 << 32) - 1
_LONG_MASK = (1 << 64) - 1
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_NO_PRODUCER = (-1, -1, -1)

VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10
"""The most that a varint of 32 or 64 bits takes."""

BYTES_PER_RECORD: Final = 128
"""Records that are opened take some memory of their own, however small they are: the limit for bytes allows
one for each so many."""


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


def check_count(records: int, bytes_max: int) -> None:
    """Check that so many records may be opened together. Raises CorruptBatchError."""
    if records > bytes_max // BYTES_PER_RECORD:
        raise CorruptBatchError(
            f"its {records} records are more than one for each {BYTES_PER_RECORD} bytes of "
            f"batch.decompressed.bytes.max, which is {bytes_max}"
        )


def read_varint(data: bytes | memoryview, at: int, bytes_max: int = VARINT_BYTES) -> tuple[int, int]:
    """A zig-zag varint of 32 bits at `at`: (value, where the next field is). Raises CorruptBatchError."""
    try:
        low = data[at]
        if low < 0x80:
            return (low >> 1) ^ -(low & 1), at + 1
        result, shift = low & 0x7F, 7
        while shift < 7 * bytes_max:
            at += 1
            byte = data[at]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                result &= _INT_MASK if bytes_max == VARINT_BYTES else _LONG_MASK
                return (result >> 1) ^ -(result & 1), at + 1
            shift += 7
    except IndexError as error:
        raise CorruptBatchError("the record's fields do not fit it") from error
    raise CorruptBatchError(f"varint of more than {bytes_max} bytes")


def write_varint(value: int, out: bytearray) -> None:
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def _encoded(value: int) -> bytes:
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


_SMALL_VARINTS = [_encoded(value) for value in range(1024)]
"""Most lengths and deltas are among these."""


def encode_varint(value: int) -> bytes:
    return _SMALL_VARINTS[value] if 0 <= value < 1024 else _encoded(value)


def read_records(batch: FetchedBatch, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[RawRecord]:
    """Open a batch. A LogAppendTime batch gives every record the broker's time, as a consumer sees it.

    Raises CorruptBatchError when the bytes do not hold what the header promises, or more than `bytes_max`.
    """
    return read_together([batch], bytes_max)


def read_together(batches: Sequence[FetchedBatch], bytes_max: int) -> list[RawRecord]:
    """Open several batches, as `read_records` does; together they may have at most `bytes_max`."""
    check_count(sum(batch.header.record_count for batch in batches), bytes_max)
    codecs = [batch.header.attributes & CODEC_MASK for batch in batches]
    payloads = [batch.data[HEADER_BYTES:] for batch in batches]
    plain = decompress_together(zip(codecs, payloads, strict=True), bytes_max)
    records: list[RawRecord] = []
    for batch, data in zip(batches, plain, strict=True):
        records += _parse(batch.header, bytes(data))
    return records


def _parse(header: BatchHeader, data: bytes) -> list[RawRecord]:
    base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.record_count
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    records: list[RawRecord] = []
    read, note = read_varint, records.append
    at, whole = 0, len(data)
    least, most = _LONG_MIN, _LONG_MAX
    for _ in range(count):
        if at == whole:
            raise CorruptBatchError(f"batch ends before its {count} records")
        size, at = read(data, at)
        end = at + size
        if size < 0 or end > whole:
            raise CorruptBatchError(f"record of {size} bytes in a batch of {whole}")
        timestamp_delta, at = read(data, at + 1, VARLONG_BYTES)
        offset_delta, at = read(data, at)
        if at > end:
            raise CorruptBatchError(f"record of {size} bytes is shorter than its fields")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        if not least <= timestamp <= most:
            timestamp = _wrapped(timestamp)
        note(RawRecord(base_offset + offset_delta, timestamp, data[at:end]))
        at = end
    if at != whole:
        raise CorruptBatchError(f"{whole - at} bytes follow the batch's {count} records")
    return records


def _wrapped(value: int) -> int:
    """Wrap a sum around at 64 bits, as Java does."""
    return ((value - _LONG_MIN) & _LONG_MASK) + _LONG_MIN


def write_batch(records: Sequence[RawRecord], codec: int) -> memoryview:
    """Encode these records (at least one) as one gapless batch from offset 0, without a producer's stamp."""
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
        timestamp_delta = encode_varint(_wrapped(record.timestamp - base_timestamp))
        offset_delta = encode_varint(delta)
        size = 1 + len(timestamp_delta) + len(offset_delta) + len(record.body)
        parts += (encode_varint(size), b"\x00", timestamp_delta, offset_delta, record.body)
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


def halve(batch: OutgoingBatch, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[OutgoingBatch]:
    """Split a batch that is too large for the target; return none when it holds a single record.

    Raises CorruptBatchError.
    """
    if len(batch.offsets) < 2:
        return []
    (fetched,) = iterate_batches(batch.data)
    records = [
        record._replace(offset=offset)
        for record, offset in zip(read_records(fetched, bytes_max), batch.offsets, strict=True)
    ]
    codec, middle = fetched.header.attributes & CODEC_MASK, len(records) // 2
    # By count, not by size: another run of the codec may shrink the whole, and nothing would be split.
    return [
        half
        for part in (records[:middle], records[middle:])
        for half in rewrite(part, codec, len(batch.data))
    ]
