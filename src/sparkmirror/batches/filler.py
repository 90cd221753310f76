"""Batches of empty records, which bring a fresh log to the offset where its source begins.

The timestamp is 0: retention by time removes them, and a broker begins a segment of its own with what
follows. Records have no key, or an empty one for compacted topics, which accept no record without.
"""

import functools
import struct
from typing import Final

import numpy as np

from sparkmirror.batches.compression import CODECS, compress, decompress
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    SEQUENCE_MODULUS,
    FetchedBatch,
    OutgoingBatch,
    build_batch,
    rewrite_header,
)
from sparkmirror.batches.records import new_header
from sparkmirror.domain.errors import CorruptBatchError

FILLER_RECORDS_MAX: Final = 1_000_000
"""So many take 0.8 MB, below the default of `max.message.bytes`, and three bytes of an offset at most."""

_ZSTD: Final = CODECS.index("zstd")
_NO_KEY, _EMPTY_KEY = b"\x01", b"\x00"
_NO_VALUE_NO_HEADERS = b"\x01\x00"
_OTHER_BYTES: Final = 5
"""The bytes of a record after its length, without its offset: attributes, timestamp, key, value, headers."""

_LIMITS: Final = ((1, 1 << 6), (2, 1 << 13), (3, 1 << 20))
"""Offsets below the second number take so many bytes (zigzag, 7 bits each)."""


def filler_batch(first: int, count: int, producer: ProducerId, *, keyed: bool) -> OutgoingBatch:
    """Make so many empty records from this offset on, numbered by it: every attempt makes the same."""
    header = new_header(_ZSTD, count, 0, 0)
    data = build_batch(header, _compressed(count, keyed=keyed))
    rewrite_header(data, producer.id, producer.epoch, first % SEQUENCE_MODULUS)
    return OutgoingBatch(data, range(first, first + count), 0)


def is_filler(batch: FetchedBatch) -> bool:
    """Whether a batch is filler; it need not be made by this version."""
    header, codec = batch.header, batch.header.attributes & CODEC_MASK
    if header.max_timestamp != 0 or header.attributes & CONTROL or not header.is_contiguous:
        return False
    if not 0 < header.record_count <= FILLER_RECORDS_MAX:
        return False
    wanted = [empty_records(header.record_count, keyed=keyed) for keyed in (False, True)]
    try:
        return bytes(decompress(codec, batch.data[HEADER_BYTES:], len(wanted[0]))) in wanted
    except CorruptBatchError:
        return False


@functools.lru_cache(maxsize=4)
def _compressed(count: int, *, keyed: bool) -> bytes:
    """Compress a batch, once for each content: most batches of a beginning are alike."""
    return compress(_ZSTD, empty_records(count, keyed=keyed))


def empty_records(count: int, *, keyed: bool) -> bytes:
    """The contents of a batch, at most FILLER_RECORDS_MAX records."""
    assert 0 < count <= FILLER_RECORDS_MAX
    parts, begin = [], 0
    for offset_bytes, end in _LIMITS:
        if begin < count:
            parts.append(_alike(begin, min(end, count), offset_bytes, keyed=keyed))
        begin = end
    return b"".join(parts)


def _alike(begin: int, end: int, offset_bytes: int, *, keyed: bool) -> bytes:
    """Records whose offsets take equally many bytes: the rows of a matrix."""
    size = _OTHER_BYTES + offset_bytes
    key = _EMPTY_KEY if keyed else _NO_KEY
    row = struct.pack("BBB", 2 * size, 0, 0) + bytes(offset_bytes) + key + _NO_VALUE_NO_HEADERS
    rows = np.tile(np.frombuffer(row, np.uint8), (end - begin, 1))
    zigzag = 2 * np.arange(begin, end)
    for at in range(offset_bytes):
        more = 0x80 if at < offset_bytes - 1 else 0
        rows[:, 3 + at] = (zigzag >> (7 * at)) & 0x7F | more
    return rows.tobytes()
