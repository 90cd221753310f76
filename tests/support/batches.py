"""Record batches as kafka-python's encoder makes them, an implementation that shares no code with ours."""

import gzip
import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

from sparkmirror.batches.record_batch import (
    CONTROL,
    HEADER_BYTES,
    TRANSACTIONAL,
    FetchedBatch,
    iterate_batches,
)

_HEADER = struct.Struct(">qiibIhiqqqhii")
_FIELDS = (
    *("base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count"),
)
NOW_MS = 1_700_000_000_000


class Rec(NamedTuple):
    """A record to encode, or one that was decoded; `offset` is relative to the batch when encoding."""

    offset: int
    timestamp: int = NOW_MS
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: tuple[tuple[str, bytes | None], ...] = ()


def encode(records: Iterable[Rec], *, codec: int = 0, **header: int) -> bytearray:
    """A batch of these records. `header` overrides fields afterwards, by our names; the CRC fits them."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    plain = bytearray(builder.build())
    data = plain[:HEADER_BYTES] + compress(codec, bytes(plain[HEADER_BYTES:]))
    return patch(data, **{"length": len(data) - 12, "attributes": codec, **header})


def compress(codec: int, data: bytes) -> bytes:
    """Compress by Arrow's codecs, not ours. Snappy comes raw, as librdkafka and Go's clients write it."""
    match codec:
        case 0:
            return data
        case 1:
            return gzip.compress(data)
        case 2:
            return bytes(pa.compress(data, "snappy", asbytes=True))
        case 3 | 4:
            return bytes(pa.compress(data, "lz4" if codec == 3 else "zstd", asbytes=True))
        case _:
            raise ValueError(codec)


def decompress(codec: int, data: bytes) -> bytes:
    match codec:
        case 0:
            return data
        case 2:
            return _decompress_snappy(data)
        case _:
            stream = pa.CompressedInputStream(pa.BufferReader(data), {1: "gzip", 3: "lz4", 4: "zstd"}[codec])
            return bytes(stream.read())


def _decompress_snappy(data: bytes) -> bytes:
    """Java's framing (snappy-java's SnappyOutputStream): magic, version, compatible version, blocks."""
    if not data.startswith(b"\x82SNAPPY\x00"):
        return _decompress_raw_snappy(data)
    assert struct.unpack_from(">ii", data, 8) == (1, 1)
    plain, at = b"", 16
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        plain += _decompress_raw_snappy(data[at + 4 : at + 4 + size])
        at += 4 + size
    return plain


def _decompress_raw_snappy(data: bytes) -> bytes:
    size = shift = at = 0
    while True:
        size |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return bytes(pa.decompress(data, size, "snappy", asbytes=True))
        at, shift = at + 1, shift + 7


def patch(data: bytearray, **header: int) -> bytearray:
    """The same batch with other header fields and the CRC that they need."""
    fields = {**dict(zip(_FIELDS, _HEADER.unpack_from(data), strict=True)), **header}
    _HEADER.pack_into(data, 0, *fields.values())
    if "crc" not in header:
        struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    return data


COORDINATOR_EPOCH: Final = 3
"""The coordinator epoch of every marker."""


def marker(base_offset: int, producer_id: int, *, commit: bool) -> bytearray:
    """A control batch that ends a transaction."""
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, COORDINATOR_EPOCH)
    return encode(
        [Rec(0, key=key, value=value)],
        base_offset=base_offset,
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
    )


def decode(data: bytes | bytearray | memoryview) -> list[Rec]:
    """Every record of one batch as kafka-python reads it, with absolute offsets; its CRC is checked."""
    assert DefaultRecordBatch(bytes(data)).validate_crc()
    codec = data[22] & 7
    plain = bytearray(data[:HEADER_BYTES]) + decompress(codec, bytes(data[HEADER_BYTES:]))
    plain[22] &= ~7
    batch = DefaultRecordBatch(plain)
    return [
        Rec(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in batch
    ]


def fetched(data: bytes | bytearray) -> FetchedBatch:
    """The batch as it would come out of a fetch response."""
    (batch,) = iterate_batches(memoryview(bytearray(data)))
    return batch


def joined(batches: Sequence[bytes | bytearray]) -> memoryview:
    """A fetch response's records."""
    return memoryview(bytearray(b"".join(batches)))


def in_batches(
    records: Sequence[Rec], sizes: Iterable[int] = (), *, codec: int = 0, **header: int
) -> list[FetchedBatch]:
    """These records at their offsets, in batches of these sizes, the rest in batches of one record."""
    made, left, at = [], iter(sizes), 0
    while at < len(records):
        part = records[at : at + next(left, 1)]
        base = part[0].offset
        relative = [record._replace(offset=record.offset - base) for record in part]
        made.append(encode(relative, codec=codec, base_offset=base, **header))
        at += len(part)
    return list(iterate_batches(joined(made)))
