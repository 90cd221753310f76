"""Reads and writes the records of many batches at once, as columns; `records` does it for a few records.

Only the walk from one record's length to the next is a Python loop; fields are read and written a column at a
time. That costs some 150 µs before the first record, so a few records are faster with `records`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparkmirror.batches.compression import decompress_together
from sparkmirror.batches.record_batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME, FetchedBatch
from sparkmirror.batches.records import VARINT_BYTES, VARLONG_BYTES, check_count, read_varint
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError

Column = NDArray[np.int64]
Bytes = NDArray[np.uint8]
ZigZag = NDArray[np.uint64]

_MORE = 0x80
_BITS = 0x7F


def read_varints(data: Bytes, at: Column, bytes_max: int = VARLONG_BYTES) -> tuple[Column, Column]:
    """The zig-zag varints at these places, and where the field behind each begins.

    A column costs a few array operations for each byte of its longest varint, however many there are.

    Raises CorruptBatchError where one lies behind the data or is too long.
    """
    try:
        values, behind = _read_bytes(data, at, bytes_max)
    except IndexError as error:
        raise CorruptBatchError("the records' fields do not fit their batch") from error
    if bytes_max == VARINT_BYTES:
        values &= np.uint64((1 << 32) - 1)
    one = np.uint64(1)
    return (values >> one).view(np.int64) ^ -(values & one).view(np.int64), behind


def _read_bytes(data: Bytes, at: Column, bytes_max: int) -> tuple[ZigZag, Column]:
    byte = data[at]
    values = (byte & _BITS).astype(np.uint64)
    behind = at + 1
    longer = (byte >= _MORE).nonzero()[0]
    shift = 7
    while len(longer):
        if shift == 7 * bytes_max:
            raise CorruptBatchError(f"varint of more than {bytes_max} bytes")
        byte = data[behind[longer]]
        values[longer] |= (byte & _BITS).astype(np.uint64) << np.uint64(shift)
        behind[longer] += 1
        longer = longer[byte >= _MORE]
        shift += 7
    return values, behind


def zigzag(values: Column) -> ZigZag:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def widths(values: ZigZag) -> Column:
    """The count of bytes that each takes as a varint."""
    result = np.ones(len(values), np.int64)
    longest = int(values.max(initial=0))
    for bits in range(7, longest.bit_length(), 7):
        result += values >= np.uint64(1 << bits)
    return result


def write_varints(out: Bytes, at: Column, values: ZigZag) -> None:
    out[at] = values & np.uint64(_BITS)
    rest = values >> np.uint64(7)
    longer = rest.nonzero()[0]
    while len(longer):
        at, rest = at[longer], rest[longer]
        out[at] |= _MORE
        at = at + 1
        out[at] = rest & np.uint64(_BITS)
        rest >>= np.uint64(7)
        longer = rest.nonzero()[0]


_FIELDS = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)

Headers = NDArray[np.void]
"""One row for each batch, with the fields of `BatchHeader`."""


def headers_of(batches: Sequence[FetchedBatch]) -> Headers:
    return np.frombuffer(b"".join([batch.data[:HEADER_BYTES] for batch in batches]), _FIELDS)


def headers_at(data: memoryview, starts: Sequence[int]) -> Headers:
    """The headers of the batches that start there; all of them are whole."""
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), HEADER_BYTES)
    return windows[np.array(starts, np.int64)].view(_FIELDS)[:, 0]


_SKIP_BY_LOW_BYTE = [2 + (low >> 1 & 0x3F) for low in range(256)]
"""The distance from a record whose length has two bytes to the next, without the high byte's share."""

_HEAD_BYTES_MAX = 32
"""Length, attributes, timestamp and offset delta never take more, so any head has room before any body."""


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """The places of records' fields in `data`, where the records follow each other, after a few zeros.

    There may be others between them. A record is its length, a byte of attributes, timestamp delta, offset
    delta and body; see `RawRecord`.
    `timestamps` (ms) and `offsets` are absolute.
    """

    data: bytes
    starts: Column
    stamps_at: Column
    offsets_at: Column
    bodies_at: Column
    ends: Column
    stamp_deltas: Column
    timestamps: Column
    offsets: Column

    def __len__(self) -> int:
        return len(self.starts)

    def chosen(self, rows: "slice | Column") -> "RecordIndex":
        return RecordIndex(
            self.data,
            self.starts[rows],
            self.stamps_at[rows],
            self.offsets_at[rows],
            self.bodies_at[rows],
            self.ends[rows],
            self.stamp_deltas[rows],
            self.timestamps[rows],
            self.offsets[rows],
        )

    def bodies(self) -> list[bytes]:
        data = self.data
        return [
            data[begin:end] for begin, end in zip(self.bodies_at.tolist(), self.ends.tolist(), strict=True)
        ]


def index_records(batches: Sequence[FetchedBatch], bytes_max: int = DECOMPRESSED_BYTES_MAX) -> RecordIndex:
    """Open batches that follow each other in a partition; none is empty.

    Raises CorruptBatchError when the bytes of one do not hold what its header promises, or when together
    they have more than `bytes_max`.
    """
    return index_payloads(headers_of(batches), payloads_of(batches), bytes_max)


def payloads_of(batches: Sequence[FetchedBatch]) -> list[memoryview]:
    """The bytes after each header."""
    return [batch.data[HEADER_BYTES:] for batch in batches]


def index_payloads(headers: Headers, payloads: Iterable[memoryview], bytes_max: int) -> RecordIndex:
    """Do as `index_records`, with batches as headers and payloads."""
    counts = headers["record_count"].astype(np.int64)
    check_count(int(counts.sum()), bytes_max)
    data, edges = _join(headers, payloads, bytes_max)
    if (counts == 1).all():
        starts = edges[:-1]
    else:
        starts = np.array(_walk_all(data, edges.tolist(), counts.tolist()), np.int64)
    return _read_columns(data, starts, headers, counts)


def _join(headers: Headers, payloads: Iterable[memoryview], bytes_max: int) -> tuple[bytes, Column]:
    """Decompressed, and where each begins and the last one ends."""
    codecs = (headers["attributes"] & CODEC_MASK).tolist()
    parts = decompress_together(zip(codecs, payloads, strict=True), bytes_max)
    edges = np.cumsum([_HEAD_BYTES_MAX, *map(len, parts)])
    return b"".join([bytes(_HEAD_BYTES_MAX), *parts]), edges


def _walk_all(data: bytes, edges: list[int], counts: list[int]) -> list[int]:
    starts: list[int] = []
    for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True):
        _walk(data, begin, end, count, starts)
    return starts


def _walk(data: bytes, at: int, end: int, count: int, starts: list[int]) -> None:
    """Note where a batch's records start. A negative length is found later, in all of them at once."""
    note = starts.append
    if count < 0:
        raise CorruptBatchError(f"batch of {count} records")
    try:
        for _ in range(count):
            note(at)
            if (low := data[at]) < 0x80:
                at += 1 + (low >> 1)
            elif (high := data[at + 1]) < 0x80:
                at += _SKIP_BY_LOW_BYTE[low] + (high << 6)
            else:
                size, at = read_varint(data, at)
                at += max(size, 0)
    except IndexError as error:
        raise CorruptBatchError(f"batch ends before its {count} records") from error
    if at > end:
        raise CorruptBatchError(f"batch ends before its {count} records")
    if at < end:
        raise CorruptBatchError(f"{end - at} bytes follow the batch's {count} records")


def _read_columns(data: bytes, begins: Column, headers: Headers, counts: Column) -> RecordIndex:
    ends = np.append(begins[1:], len(data))
    plain = np.frombuffer(data, np.uint8)
    if begins.max(initial=0) >= len(data):
        raise CorruptBatchError("the last batch ends before its records")
    if (plain[begins] & 1).any():  # the sign of a zig-zag varint
        raise CorruptBatchError("record of a negative number of bytes")
    sizes, attributes_at = read_varints(plain, begins, VARINT_BYTES)
    if (attributes_at + sizes != ends).any():
        raise CorruptBatchError("a record is not as long as its batch says")
    stamps_at = attributes_at + 1
    stamp_deltas, offsets_at = read_varints(plain, stamps_at)
    offset_deltas, bodies_at = read_varints(plain, offsets_at, VARINT_BYTES)
    if (bodies_at > ends).any():
        raise CorruptBatchError("a record is shorter than its fields")
    timestamps = np.repeat(headers["base_timestamp"].astype(np.int64), counts)
    timestamps += stamp_deltas
    are_stamped = headers["attributes"] & LOG_APPEND_TIME != 0
    if are_stamped.any():
        # As a consumer sees it: the broker's time, for every record of the batch.
        append_times = np.repeat(headers["max_timestamp"].astype(np.int64), counts)
        timestamps = np.where(np.repeat(are_stamped, counts), append_times, timestamps)
    offsets = np.repeat(headers["base_offset"].astype(np.int64), counts)
    offsets += offset_deltas
    return RecordIndex(
        data, begins, stamps_at, offsets_at, bodies_at, ends, stamp_deltas, timestamps, offsets
    )


def pack_records(index: RecordIndex, rows: range, *, room: int = 0) -> bytearray:
    """The uncompressed contents of one batch without gaps, behind `room` zeros, from at least one record.

    Offsets count from 0, timestamps from the first record's.
    """
    chosen = slice(rows.start, rows.stop)
    starts, bodies_at, ends = index.starts[chosen], index.bodies_at[chosen], index.ends[chosen]
    offset_deltas = zigzag(np.arange(len(rows)))
    stamp_deltas = index.timestamps[chosen] - index.timestamps[rows.start]
    stamps = zigzag(stamp_deltas)
    offset_widths, stamp_widths = widths(offset_deltas), widths(stamps)
    lengths = 1 + stamp_widths + offset_widths + ends - bodies_at
    wire_lengths = zigzag(lengths)
    length_widths = widths(wire_lengths)
    head_widths = length_widths + 1 + stamp_widths + offset_widths

    # Neighbours whose fields keep their widths are copied in one run behind the record before them; then
    # only what their fields say has to change. A record whose head changes its shape, or that followed
    # another, begins a run, with as many bytes before its body as the new head takes.
    is_reshaped = offset_widths != bodies_at - index.offsets_at[chosen]
    is_reshaped |= stamp_widths != index.offsets_at[chosen] - index.stamps_at[chosen]
    is_reshaped |= length_widths + 1 != index.stamps_at[chosen] - starts
    is_reshaped[0] = True
    is_reshaped[1:] |= starts[1:] != ends[:-1]
    heads = is_reshaped.nonzero()[0]
    lasts = np.append(heads[1:], len(rows)) - 1
    data = index.data
    cuts = zip((bodies_at - head_widths)[heads].tolist(), ends[lasts].tolist(), strict=True)
    payload = bytearray().join([bytes(room), *[data[begin:end] for begin, end in cuts]])

    new_starts = room + (length_widths + lengths).cumsum() - lengths - length_widths
    new_stamps_at = new_starts + length_widths + 1
    out = np.frombuffer(payload, np.uint8)
    write_varints(out, new_starts[heads], wire_lengths[heads])
    out[new_stamps_at - 1] = 0
    restamped = (is_reshaped | (stamp_deltas != index.stamp_deltas[chosen])).nonzero()[0]
    write_varints(out, new_stamps_at[restamped], stamps[restamped])
    write_varints(out, new_stamps_at + stamp_widths, offset_deltas)
    return payload
