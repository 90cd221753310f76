"""Record batches of format v2 by their 61-byte header: finds them, judges them, rewrites their headers.

Layout: Kafka's `DefaultRecordBatch` (KIP-98). Nothing here opens a batch; `records` does that.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.domain.errors import CorruptBatchError

HEADER_BYTES = 61
_HEADER = struct.Struct(">qiibIhiqqqhii")
OFFSET_AND_LENGTH = struct.Struct(">qi")
_LEADER_EPOCH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_CRC = struct.Struct(">I")

_CRC_AT = 17
CRC_COVERS_FROM = 21
_PRODUCER_AT = 43
LOG_OVERHEAD = 12  # base offset and length, which the length field does not count

MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

SEQUENCE_MODULUS = 1 << 31
NO_PRODUCER_ID = -1


class BatchHeader(NamedTuple):
    """The fields in wire order; `length` counts the bytes after itself."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_MODULUS

    @property
    def is_contiguous(self) -> bool:
        """Whether every offset of the batch still has its record: the cleaner keeps first and last offset."""
        return self.record_count == self.last_offset_delta + 1


class FetchedBatch(NamedTuple):
    """A whole batch inside a fetch response; `data` is a writable view of it."""

    header: BatchHeader
    data: memoryview


class OutgoingBatch(NamedTuple):
    """A batch to produce, and where its records come from.

    `offsets` are the upstream offsets of its records, a `range` unless records are missing between them;
    `max_timestamp` is in ms.
    """

    data: memoryview
    offsets: Sequence[int]
    max_timestamp: int

    @property
    def is_contiguous(self) -> bool:
        return self.offsets[-1] - self.offsets[0] + 1 == len(self.offsets)


class BatchAction(Enum):
    """The way of a batch to the target."""

    FAST = auto()
    """Rewrite the header and send the bytes as they are."""
    REWRITE = auto()
    """Open it: records must be dropped or their fields changed."""
    NOTHING_LEFT = auto()
    """There is no record to copy (control batch, or emptied by compaction); the position moves past it."""
    BEHIND = auto()
    """Wholly before the position: a fetch returns whole batches."""


def iterate_batches(data: memoryview) -> Iterator[FetchedBatch]:
    """Yield the whole batches of a fetch response; a cut-off batch at the end is left for the next fetch.

    Raises CorruptBatchError for lengths no batch can have and for formats v0 and v1, naming the offset.
    """
    at, end = 0, len(data)
    while end - at > _CRC_AT:
        base_offset, length = OFFSET_AND_LENGTH.unpack_from(data, at)
        size = length + LOG_OVERHEAD
        magic = data[at + 16]
        if magic != MAGIC:
            raise CorruptBatchError(
                f"offset {base_offset}: record format v{magic} can't be copied; "
                "only v2 (Kafka 0.11 and newer) is supported"
            )
        if size < HEADER_BYTES:
            raise CorruptBatchError(f"offset {base_offset}: batch length {length} is too small")
        if at + size > end:
            return
        yield FetchedBatch(BatchHeader._make(_HEADER.unpack_from(data, at)), data[at : at + size])
        at += size


def first_batch_bytes(data: memoryview) -> int:
    """The size of the first batch of a fetch response, 0 where it can't be told."""
    return OFFSET_AND_LENGTH.unpack_from(data)[1] + LOG_OVERHEAD if len(data) >= LOG_OVERHEAD else 0


def end_of_batch(data: memoryview, offset: int) -> int | None:
    """The offset that follows the batch which holds `offset`, None if it is unknown.

    For a batch that is corrupt: the start of the next one is more reliable than its own header.
    """
    found = None
    try:
        for batch in iterate_batches(data):
            if found is not None:
                return batch.header.base_offset
            if batch.header.last_offset >= offset:
                found = batch.header.last_offset + 1
    except CorruptBatchError:
        return None
    return found


def writers(data: memoryview) -> set[int]:
    """The producer ids in a fetch response, up to the first batch that is corrupt."""
    found: set[int] = set()
    with suppress(CorruptBatchError):
        for batch in iterate_batches(data):
            found.add(batch.header.producer_id)
    return found


def has_valid_crc(batch: FetchedBatch) -> bool:
    return crc32c(batch.data[CRC_COVERS_FROM:]) == batch.header.crc


def choose_action(header: BatchHeader, position: int, *, target_stamps_append_time: bool) -> BatchAction:
    """Judge a batch by its header. `position` is the next offset to copy."""
    if header.last_offset < position:
        return BatchAction.BEHIND
    if header.attributes & CONTROL or header.record_count == 0:
        return BatchAction.NOTHING_LEFT
    if not header.is_contiguous or header.base_offset < position:
        return BatchAction.REWRITE
    if header.attributes & LOG_APPEND_TIME and not target_stamps_append_time:
        return BatchAction.REWRITE
    return BatchAction.FAST


def rewrite_header(
    data: memoryview,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    transactional: bool = False,
) -> None:
    """Turn a fetched batch into one to produce, in place: offset, epochs, producer, sequence, attributes.

    Keys, values, headers, timestamps and codec stay.

    Only the codec survives of the attributes: a delete horizon (bit 6) set by compaction would make the
    target drop tombstones at its first cleaning (KIP-534). It may be rewritten again.
    """
    OFFSET_AND_LENGTH.pack_into(data, 0, 0, len(data) - LOG_OVERHEAD)
    _LEADER_EPOCH.pack_into(data, 12, -1)
    (attributes,) = _ATTRIBUTES.unpack_from(data, CRC_COVERS_FROM)
    attributes = (attributes & CODEC_MASK) | (TRANSACTIONAL if transactional else 0)
    _ATTRIBUTES.pack_into(data, CRC_COVERS_FROM, attributes)
    _PRODUCER.pack_into(data, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(data, _CRC_AT, crc32c(data[CRC_COVERS_FROM:]))


def build_batch(header: BatchHeader, payload: bytes | memoryview) -> memoryview:
    """A whole batch from header fields and (compressed) records; length and CRC are computed."""
    data = bytearray(HEADER_BYTES + len(payload))
    _HEADER.pack_into(data, 0, *header)
    data[HEADER_BYTES:] = payload
    view = memoryview(data)
    OFFSET_AND_LENGTH.pack_into(view, 0, header.base_offset, len(data) - LOG_OVERHEAD)
    _CRC.pack_into(view, _CRC_AT, crc32c(view[CRC_COVERS_FROM:]))
    return view
