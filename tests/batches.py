"""Record batches as kafka-python's encoder makes them, an implementation that shares no code with ours."""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

from sparkmirror.domain.record_batch import CONTROL, TRANSACTIONAL, FetchedBatch, iterate_batches

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
    """A batch of these records. `header` overrides fields afterwards, by our names; the CRC fits them.

    kafka-python alone compresses gzip (codec 1); other codecs need libraries that are not here.
    """
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    return patch(bytearray(builder.build()), **header)


def patch(data: bytearray, **header: int) -> bytearray:
    """The same batch with other header fields and the CRC that they need."""
    fields = {**dict(zip(_FIELDS, _HEADER.unpack_from(data), strict=True)), **header}
    _HEADER.pack_into(data, 0, *fields.values())
    if "crc" not in header:
        struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    return data


def marker(base_offset: int, producer_id: int, *, commit: bool) -> bytearray:
    """A control batch that ends a transaction."""
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 3)
    return encode(
        [Rec(0, key=key, value=value)],
        base_offset=base_offset,
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
    )


def decode(data: bytes | bytearray | memoryview) -> list[Rec]:
    """Every record of one batch as kafka-python reads it, with absolute offsets; its CRC is checked."""
    batch = DefaultRecordBatch(bytes(data))
    assert batch.validate_crc()
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
