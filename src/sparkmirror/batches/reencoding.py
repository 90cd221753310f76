"""Batches that can't go as they are, opened and written again: renumbered, merged, split, recompressed."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from sparkmirror.batches.columns import (
    Headers,
    RecordIndex,
    headers_of,
    index_payloads,
    pack_records,
    payloads_of,
)
from sparkmirror.batches.compression import compress, decompress
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    FetchedBatch,
    OutgoingBatch,
    build_batch,
    iterate_batches,
    rewrite_header,
)
from sparkmirror.batches.records import RawRecord, new_header, read_together, rewrite, write_sparse_batch
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError

MANY_RECORDS = 100
"""The count of records from which columns are faster than a loop: see `python -m bench.reencoding`."""

_PACKED_BYTES_MAX = 16 << 20
"""Records with more are split before they are packed: what that takes depends on their number."""


class Encoding(NamedTuple):
    """The format of batches to write, of at most `bytes_max`, and the most to decompress together."""

    codec: int
    bytes_max: int
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    is_gapless: bool = False
    """Whether a batch ends where offsets are missing."""


class Change(Protocol):
    """Changes the records of a partition, or leaves some out, on their way to the target."""

    @property
    def tolerates(self) -> bool:
        """Whether records that can't be changed are left out."""
        ...

    @property
    def filtered(self) -> int:
        """The number of records that transforms have left out."""
        ...

    def concerns(self, batch: FetchedBatch, bytes_max: int) -> bool:
        """Whether records of the batch may change; else it can go as it is. Raises CorruptBatchError."""
        ...

    def apply(
        self, batches: Sequence[FetchedBatch], position: int, encoding: Encoding
    ) -> list[OutgoingBatch] | None:
        """Do as `reopen`, with the changed records; None where all are as they were.

        Raises ChangeFailedError too.
        """
        ...


class ChangeFailedError(Exception):
    """The record at this offset can't be changed. `before` are the batches of those before it."""

    def __init__(self, offset: int, reason: str, before: list[OutgoingBatch]) -> None:
        super().__init__(reason)
        self.offset = offset
        self.before = before


def reopen(batches: Sequence[FetchedBatch], position: int, encoding: Encoding) -> list[OutgoingBatch]:
    """The records from `position` on as one batch, or as several where it would exceed the encoding's limit.

    The batches follow each other in a partition, and each has a record. A single record above the limit
    becomes a batch of its own: the target decides whether to accept it.
    Raises CorruptBatchError.
    """
    if sum(batch.header.record_count for batch in batches) >= MANY_RECORDS:
        return reopen_columns(headers_of(batches), payloads_of(batches), position, encoding)
    return write_records(records_from(batches, position, encoding.decompressed_bytes_max), encoding)


def records_from(batches: Sequence[FetchedBatch], position: int, bytes_max: int) -> list[RawRecord]:
    """The records of batches that follow each other, from the position on. Raises CorruptBatchError."""
    records = read_together(batches, bytes_max)
    if records:
        increase = all(earlier.offset < later.offset for earlier, later in pairwise(records))
        low, high = batches[0].header.base_offset, batches[-1].header.last_offset
        _check_order(low, high, records[0].offset, records[-1].offset, increase=increase)
    return [record for record in records if record.offset >= position]


def write_records(records: Sequence[RawRecord], encoding: Encoding) -> list[OutgoingBatch]:
    if not encoding.is_gapless:
        return rewrite(records, encoding.codec, encoding.bytes_max)
    runs = runs_of(np.array([record.offset for record in records], np.int64))
    return [
        batch
        for run in runs
        for batch in rewrite(records[run.start : run.stop], encoding.codec, encoding.bytes_max)
    ]


def carried(batch: FetchedBatch, change: Change, bytes_max: int) -> list[FetchedBatch]:
    """The batch as it arrives, with the offsets that it has; none if all of it is left out.

    Raises CorruptBatchError and ChangeFailedError.
    """
    header = batch.header
    encoding, position = Encoding(0, bytes_max, bytes_max), header.base_offset
    changed: list[OutgoingBatch] = []
    while True:
        try:
            rest = change.apply([batch], position, encoding)
            break
        except ChangeFailedError as error:
            if not change.tolerates:
                raise
            changed, position = changed + error.before, error.offset + 1
    if rest is None and position == header.base_offset:
        return [batch]
    changed += reopen([batch], position, encoding) if rest is None else rest
    records = [
        record._replace(offset=offset)
        for each in changed
        for record, offset in zip(_read_back(each, bytes_max), each.offsets, strict=True)
    ]
    return list(iterate_batches(write_sparse_batch(records, header))) if records else []


def _read_back(batch: OutgoingBatch, bytes_max: int) -> list[RawRecord]:
    return read_together(list(iterate_batches(batch.data)), bytes_max)


def runs_of(offsets: "np.ndarray[Any, Any]") -> list[range]:
    """The rows as ranges of consecutive offsets."""
    ends = [*(np.flatnonzero(np.diff(offsets) != 1) + 1).tolist(), len(offsets)]
    return [range(begin, end) for begin, end in pairwise([0, *ends]) if begin < end]


def check_offsets(headers: Headers, index: RecordIndex) -> None:
    """Check that the records increase as their batches' headers say. Raises CorruptBatchError."""
    increase = bool((index.offsets[1:] > index.offsets[:-1]).all())
    low, high = int(headers["base_offset"][0]), int(headers["base_offset"][-1])
    high += int(headers["last_offset_delta"][-1])
    _check_order(low, high, int(index.offsets[0]), int(index.offsets[-1]), increase=increase)


def _check_order(low: int, high: int, first: int, last: int, *, increase: bool) -> None:
    """Check that the records match the headers, since positions are taken from the headers."""
    if not increase or first < low or last > high:
        raise CorruptBatchError(f"its records' offsets do not increase from {low} to {high}")


def recompress(batch: FetchedBatch, encoding: Encoding) -> OutgoingBatch:
    """The whole batch in another codec; its records are not read. Raises CorruptBatchError."""
    header, codec = batch.header, encoding.codec
    before = header.attributes & CODEC_MASK
    plain = decompress(before, batch.data[HEADER_BYTES:], encoding.decompressed_bytes_max)
    new = header._replace(attributes=header.attributes & ~CODEC_MASK | codec)
    data = build_batch(new, compress(codec, plain))
    return OutgoingBatch(data, range(header.base_offset, header.last_offset + 1), header.max_timestamp)


def reopen_columns(
    headers: Headers, payloads: Iterable[memoryview], position: int, encoding: Encoding
) -> list[OutgoingBatch]:
    """Do as `reopen`, with batches as headers and payloads."""
    index = index_payloads(headers, payloads, encoding.decompressed_bytes_max)
    check_offsets(headers, index)
    first = int(np.searchsorted(index.offsets, position))
    return pack(index.chosen(slice(first, None)) if first else index, encoding)


def pack(index: RecordIndex, encoding: Encoding) -> list[OutgoingBatch]:
    """All records of the index as `reopen` writes them."""
    runs = runs_of(index.offsets) if encoding.is_gapless else [range(len(index))]
    return [batch for run in runs for batch in _pack(index, run, encoding.codec, encoding.bytes_max)]


def _pack(index: RecordIndex, rows: range, codec: int, bytes_max: int) -> list[OutgoingBatch]:
    if not rows:
        return []
    if index.ends[rows[-1]] - index.starts[rows[0]] > _PACKED_BYTES_MAX and len(rows) > 1:
        return _pack_halves(index, rows, codec, bytes_max)
    timestamps = index.timestamps[rows.start : rows.stop]
    newest = int(timestamps.max())
    header = new_header(codec, len(rows), int(timestamps[0]), newest)
    data = memoryview(pack_records(index, rows, room=HEADER_BYTES))
    if codec:
        data = build_batch(header, compress(codec, data[HEADER_BYTES:]))
    else:  # without another copy
        data[:HEADER_BYTES] = build_batch(header, b"")
        rewrite_header(data, header.producer_id, header.producer_epoch, header.base_sequence)
    if len(data) > bytes_max and len(rows) > 1:
        del data
        return _pack_halves(index, rows, codec, bytes_max)
    return [OutgoingBatch(data, _offsets(index, rows), newest)]


def _pack_halves(index: RecordIndex, rows: range, codec: int, bytes_max: int) -> list[OutgoingBatch]:
    middle = len(rows) // 2
    return _pack(index, rows[:middle], codec, bytes_max) + _pack(index, rows[middle:], codec, bytes_max)


def _offsets(index: RecordIndex, rows: range) -> Sequence[int]:
    first, last = int(index.offsets[rows[0]]), int(index.offsets[rows[-1]])
    if last - first + 1 == len(rows):
        return range(first, last + 1)
    return index.offsets[rows.start : rows.stop].tolist()  # type: ignore[no-any-return]  # of integers
