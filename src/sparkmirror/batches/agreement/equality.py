"""Decides whether two records, or two batches, are the same.

Records are the same if key, value and headers are the same bytes, and the timestamps are equal. Timestamps
don't count (`timestamps` False) where the broker of one log stamps its own: LogAppendTime. Offsets, batches,
codecs and producers never count.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter

from sparkmirror.batches.compression import decompress
from sparkmirror.batches.record_batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME, FetchedBatch
from sparkmirror.batches.records import RawRecord, naming_offset, read_records
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX

RecordKey = tuple[int, bytes]
"""A timestamp (ms, 0 where timestamps don't count), and key, value and headers as on the wire.

Equal for records that are the same.
"""


def record_keys(times: Iterable[int], bodies: list[bytes], *, timestamps: bool) -> list[RecordKey]:
    """The keys of records that are given in columns."""
    return list(zip(times if timestamps else [0] * len(bodies), bodies, strict=True))


def same_record(one: RawRecord, other: RawRecord, *, timestamps: bool) -> bool:
    return one.body == other.body and (not timestamps or one.timestamp == other.timestamp)


def same_record_at(offset: int, one: FetchedBatch, other: FetchedBatch, *, timestamps: bool) -> bool:
    """Whether two batches have the same record at an offset; True also where one of them has none there."""
    records = [
        next((record for record in read_records(batch) if record.offset == offset), None)
        for batch in (one, other)
    ]
    here, there = records
    return here is None or there is None or same_record(here, there, timestamps=timestamps)


def by_offset(
    one: Iterable[RawRecord], other: Iterable[RawRecord]
) -> Iterator[tuple[RawRecord | None, RawRecord | None]]:
    """The records that two logs have at each offset, in order; None for a log without a record there."""
    sides = merge(((each.offset, 0, each) for each in one), ((each.offset, 1, each) for each in other))
    for _, group in groupby(sides, key=itemgetter(0)):
        here = {side: record for _, side, record in group}
        yield here.get(0), here.get(1)


def same_batch(
    one: FetchedBatch,
    other: FetchedBatch,
    *,
    timestamps: bool,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bool:
    """Whether two batches hold the same records by equal bytes, decompressed if the codecs differ.

    False says nothing: the records may be the same all the same. Raises CorruptBatchError.
    """
    header, other_header = one.header, other.header
    if header.record_count != other_header.record_count:
        return False
    if timestamps and (
        header.base_timestamp != other_header.base_timestamp
        or (header.attributes | other_header.attributes) & LOG_APPEND_TIME
    ):
        return False
    codecs = header.attributes & CODEC_MASK, other_header.attributes & CODEC_MASK
    if codecs[0] == codecs[1]:
        # Copied, because views are compared byte by byte.
        return bytes(one.data[HEADER_BYTES:]) == bytes(other.data[HEADER_BYTES:])
    return _plain(one, codecs[0], decompressed_bytes_max) == _plain(other, codecs[1], decompressed_bytes_max)


def _plain(batch: FetchedBatch, codec: int, bytes_max: int) -> bytes:
    with naming_offset(batch.header.base_offset):
        return bytes(decompress(codec, batch.data[HEADER_BYTES:], bytes_max))
