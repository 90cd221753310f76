"""Record batches as Arrow record batches with the columns of Spark's Kafka source, and back.

`to_arrow` decodes only the columns that are asked for. `from_arrow` encodes batches to produce: the same
records in the same bytes. Both treat all records of a call at once, as `columns` does. Nulls are nulls on
both sides; a record without headers has a null there, as in Spark. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkmirror.batches.arrow_schema import HEADERS, TIMESTAMP, US_PER_MS, schema_of, timestamps_of
from sparkmirror.batches.columns import (
    Bytes,
    Column,
    Headers,
    RecordIndex,
    headers_of,
    index_payloads,
    payloads_of,
    read_varints,
    widths,
    write_varints,
    zigzag,
)
from sparkmirror.batches.compression import compress
from sparkmirror.batches.few_records import FEW_RECORDS, FewOpened
from sparkmirror.batches.record_batch import LOG_APPEND_TIME, FetchedBatch, OutgoingBatch, build_batch
from sparkmirror.batches.record_body import nullable, write_headers
from sparkmirror.batches.records import VARINT_BYTES, RawRecord, new_header
from sparkmirror.batches.reencoding import Encoding, check_offsets, pack, runs_of, write_records
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError, MalformedRecordError
from sparkmirror.domain.ids import TopicPartition

EVERY_OFFSET: Final = range(1 << 62)

_HEAD_BYTES_MAX: Final = 32
"""A record's fields without key, value and headers take no more."""
_COMPRESSED_RATIO: Final = 4
"""Batches to compress are filled up to so many times their limit, and halved where that is too much."""


def to_arrow(
    batches: Sequence[FetchedBatch],
    partition: TopicPartition,
    columns: Sequence[str],
    offsets: range = EVERY_OFFSET,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> pa.RecordBatch:
    """The records at these offsets as `Opened.columns` has them. Raises CorruptBatchError."""
    return open_batches(batches, offsets, bytes_max).columns(partition, columns)


def open_batches(batches: Sequence[FetchedBatch], offsets: range, bytes_max: int) -> "Opened | FewOpened":
    """Open batches as `Opened.of` does, in the way that is faster for so many records."""
    is_few = sum(batch.header.record_count for batch in batches) < FEW_RECORDS
    return (FewOpened if is_few else Opened).of(batches, offsets, bytes_max)


@dataclass(frozen=True, slots=True)
class Opened:
    """Records of batches that follow each other in a partition; `rows` are their numbers there."""

    headers: Headers
    rows: Column
    index: RecordIndex

    @classmethod
    def of(cls, batches: Sequence[FetchedBatch], offsets: range, bytes_max: int) -> "Opened":
        """The records at these offsets of one batch or more; none is empty, aborted or a control batch.

        Raises CorruptBatchError, also when they have more than `bytes_max` together.
        """
        headers = headers_of(batches)
        index = index_payloads(headers, payloads_of(batches), bytes_max)
        check_offsets(headers, index)
        first, end = np.searchsorted(index.offsets, (offsets.start, offsets.stop)).tolist()
        return cls(headers, np.arange(first, end), index.chosen(slice(first, end)))

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, offsets: Column) -> "Opened":
        """Return the records at these offsets, which it has."""
        if len(offsets) == len(self):
            return self
        rows = np.searchsorted(self.index.offsets, offsets)
        return Opened(self.headers, self.rows[rows], self.index.chosen(rows))

    def columns(self, partition: TopicPartition, names: Sequence[str]) -> pa.RecordBatch:
        """Decode these columns of `SCHEMA`, `CLOSED` and `BODIES`. Raises CorruptBatchError."""
        return pa.record_batch(list(_columns(self, partition, names)), schema=schema_of(tuple(names)))

    def packed(self, encoding: Encoding) -> list[OutgoingBatch]:
        """All records as they are."""
        return pack(self.index, encoding)

    def timestamp_types(self) -> pa.Array:
        kinds = (self.headers["attributes"] & LOG_APPEND_TIME != 0).astype(np.int32)
        return pa.array(np.repeat(kinds, self.headers["record_count"].astype(np.int64))[self.rows])


def _columns(opened: Opened, partition: TopicPartition, columns: Sequence[str]) -> Iterator[pa.Array]:
    fields = _body_columns(opened, columns)
    for name in columns:
        match name:
            case "key" | "value" | "headers" | "body" | "tombstone":
                yield fields[name]
            case "topic":
                yield pa.repeat(partition.topic, len(opened))
            case "partition":
                yield pa.array(np.full(len(opened), partition.partition, np.int32))
            case "offset":
                yield pa.array(opened.index.offsets)
            case "timestamp":
                yield timestamps_of(opened.index.timestamps, opened.index.offsets)
            case "timestampType":
                yield opened.timestamp_types()


def _body_columns(opened: Opened, columns: Sequence[str]) -> dict[str, pa.Array]:
    """Key, value and headers, read in this order and only as far as the last one that is wanted."""
    found: dict[str, pa.Array] = {}
    last = max((_READ.get(name, 0) for name in columns), default=0)
    data, buffer = np.frombuffer(opened.index.data, np.uint8), pa.py_buffer(opened.index.data)
    at, ends = opened.index.bodies_at, opened.index.ends
    for name in ("key", "value")[:last]:
        sizes, begins = read_varints(data, at, VARINT_BYTES)
        at = _behind(begins, sizes, ends)
        if name in columns:
            found[name] = _slices(buffer, begins, sizes, pa.binary())
        if name == "value" and "tombstone" in columns:
            found["tombstone"] = pa.array(sizes < 0)
    if "body" in columns:
        found["body"] = _slices(buffer, opened.index.bodies_at, at - opened.index.bodies_at, pa.binary())
    if "headers" in columns:
        found["headers"] = _read_headers(data, buffer, at, ends)
    return found


_READ: Final = {"key": 1, "value": 2, "body": 2, "tombstone": 2, "headers": 2}
"""The number of fields that are read for a column, of key and value."""


def _behind(begins: Column, sizes: Column, ends: Column) -> Column:
    """The places behind these fields. Raises CorruptBatchError where one is larger than its record."""
    behind = begins + np.maximum(sizes, 0)
    if (behind > ends).any():
        raise CorruptBatchError("the record's fields do not fit it")
    return behind


def _slices(buffer: pa.Buffer, begins: Column, sizes: Column, kind: pa.DataType) -> pa.Array:
    """Places of a buffer that follow each other, as values; a negative size is a null. Copied once."""
    count = len(begins)
    edges = np.zeros(2 * count + 1, np.int32)
    edges[: 2 * count : 2] = begins
    edges[1::2] = begins + np.maximum(sizes, 0)
    edges[2 * count] = edges[2 * count - 1] if count else 0
    values_and_gaps = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(edges), buffer])
    nulls = sizes < 0
    values = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=nulls if nulls.any() else None)
    return values_and_gaps.take(values)


def _read_headers(data: Bytes, buffer: pa.Buffer, at: Column, ends: Column) -> pa.Array:
    """Each step reads one header of every record that has one left."""
    counts, at = read_varints(data, at, VARINT_BYTES)
    if (2 * counts > ends - at).any() or (at > ends).any():
        raise CorruptBatchError("the record's headers do not fit it")
    counts = np.maximum(counts, 0)
    if not counts.any():
        return pa.nulls(len(at), HEADERS)
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    places = np.zeros((4, int(edges[-1])), np.int64)
    for step in range(int(counts.max())):
        rows = np.flatnonzero(counts > step)
        slots = edges[rows] + step
        for field in (0, 2):
            sizes, begins = read_varints(data, at[rows], VARINT_BYTES)
            at[rows] = _behind(begins, sizes, ends[rows])
            places[field, slots], places[field + 1, slots] = begins, sizes
    keys = _slices(buffer, places[0], np.maximum(places[1], 0), pa.string())
    values = _slices(buffer, places[2], places[3], pa.binary())
    entries = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(
        pa.array(edges.astype(np.int32)), entries, type=HEADERS, mask=pa.array(counts == 0)
    )


def from_arrow(records: pa.RecordBatch, encoding: Encoding, now_ms: int) -> list[OutgoingBatch]:
    """Batches of at most the encoding's limit with all records in order; a larger record is one of its own.

    A column that is missing (`key`, `value`, `headers`, `timestamp`, `offset`) counts as null; others are
    ignored, except `body`, which replaces key and value. Key and value may be strings. `now_ms` is the
    timestamp where that is null. The batches' `offsets` are those of the column, or else numbers of rows.

    Raises MalformedRecordError for a header without a key.
    """
    if records.num_rows < FEW_RECORDS:
        return write_records(_raw_records(records, now_ms), encoding)
    rows = _Encoded.of(records, now_ms)
    return [
        batch
        for run in (runs_of(rows.offsets) if encoding.is_gapless else [range(len(rows))])
        for part in _parts(rows.sizes, run, encoding)
        for batch in _batches(rows, part, encoding)
    ]


def _raw_records(records: pa.RecordBatch, now_ms: int) -> list[RawRecord]:
    headers = _few_headers(_column(records, "headers", HEADERS))
    if "body" in records.schema.names:
        bodies = records.column("body").to_pylist()
    else:
        fields = (_binary(records, name).to_pylist() for name in ("key", "value"))
        bodies = [nullable(key) + nullable(value) for key, value in zip(*fields, strict=True)]
    places = zip(_offsets(records).tolist(), _timestamps(records, now_ms).tolist(), strict=True)
    found = zip(places, bodies, headers, strict=True)
    return [RawRecord(offset, timestamp, body + end) for (offset, timestamp), body, end in found]


def _few_headers(column: pa.Array) -> list[bytes]:
    """Encode them as `_write_headers` does."""
    if column.null_count == len(column):
        return [write_headers(())] * len(column)
    keys, values = _entries(column)
    entries = zip(keys.to_pylist(), values.to_pylist(), strict=True)
    counts = column.value_lengths().fill_null(0).to_pylist()
    return [write_headers(list(islice(entries, count))) for count in counts]


def _entries(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Keys and values of all headers. Raises MalformedRecordError."""
    keys, values = (field.cast(pa.binary()) for field in column.flatten().flatten())
    if keys.null_count:
        raise MalformedRecordError("a header without a key can't be written")
    return keys, values


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Holds the encoded parts of records that are the same in any batch."""

    timestamps: Column
    """Milliseconds since the epoch."""
    offsets: Column
    lead: Sequence[Column]
    """The varint that follows the record's own: the key's size, unless `fields` have it."""
    fields: Sequence[pa.Array]
    """Encoded: all that follows."""
    sizes: Column
    """The lengths of the bodies, from the key's length to the last header."""

    @classmethod
    def of(cls, records: pa.RecordBatch, now_ms: int) -> "_Encoded":
        headers = _write_headers(_column(records, "headers", HEADERS))
        lead: list[Column] = []
        if "body" in records.schema.names:
            fields = [records.column("body"), headers]
        else:
            key, value = _binary(records, "key"), _binary(records, "value")
            lead, fields = [_sizes(key)], [key, _varints(_sizes(value)), value, headers]
        sizes = sum((np.maximum(_sizes(field), 0) for field in fields), np.zeros(len(headers), np.int64))
        sizes = sum((widths(zigzag(column)) for column in lead), sizes)
        return cls(_timestamps(records, now_ms), _offsets(records), lead, fields, sizes)

    def __len__(self) -> int:
        return len(self.sizes)


def _column(records: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    at = records.schema.get_field_index(name)
    return pa.nulls(records.num_rows, kind) if at < 0 else records.column(at)


def _binary(records: pa.RecordBatch, name: str) -> pa.Array:
    return _column(records, name, pa.binary()).cast(pa.binary())


def _sizes(values: pa.Array) -> Column:
    """The sizes of binary values, -1 for a null."""
    count = len(values)
    if count == 0:
        return np.zeros(0, np.int64)
    edges = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + count + 1]
    sizes = np.diff(edges).astype(np.int64)
    if values.null_count:
        sizes[values.is_null().to_numpy(zero_copy_only=False)] = -1
    return sizes


def _timestamps(records: pa.RecordBatch, now_ms: int) -> Column:
    stamps = _column(records, "timestamp", TIMESTAMP)
    exact = stamps.cast(pa.timestamp("us", tz=stamps.type.tz), safe=False).view(pa.int64())
    found: Column = exact.fill_null(now_ms * US_PER_MS).to_numpy() // US_PER_MS
    return found


def _offsets(records: pa.RecordBatch) -> Column:
    at = records.schema.get_field_index("offset")
    return np.arange(records.num_rows) if at < 0 else records.column(at).to_numpy()


def _varints(values: Column) -> pa.Array:
    """Encode each number as a varint, in a binary column."""
    return _rows_of_varints([values])


def _rows_of_varints(columns: Sequence[Column]) -> pa.Array:
    """The varints of each row one behind the other, in a binary column."""
    wire = [zigzag(column) for column in columns]
    wide = [widths(column) for column in wire]
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(sum(wide[1:], wide[0]))])
    data, at = np.zeros(int(edges[-1]), np.uint8), edges[:-1]
    for column, width in zip(wire, wide, strict=True):
        write_varints(data, at, column)
        at = at + width
    buffers = [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers)


def _write_headers(column: pa.Array) -> pa.Array:
    """Encoded with their count."""
    counts = column.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    if not counts.any():
        return _varints(counts)
    keys, values = _entries(column)
    entries = _joined([_varints(_sizes(keys)), keys, _varints(_sizes(values)), values])
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    sizes = np.concatenate([np.zeros(1, np.int64), np.cumsum(_sizes(entries))])[edges].astype(np.int32)
    runs = pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(sizes), entries.buffers()[2]])
    return _joined([_varints(counts), runs])


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    """The columns' values of each row as one; nulls take no bytes."""
    nothing = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(*columns, nothing, null_handling="replace", null_replacement="")


def _parts(sizes: Column, run: range, encoding: Encoding) -> Iterator[range]:
    """The rows of each batch, by what they take before they are compressed."""
    limit = encoding.bytes_max * (_COMPRESSED_RATIO if encoding.codec else 1)
    ends = np.cumsum(sizes[run.start : run.stop] + _HEAD_BYTES_MAX)
    begin, before = 0, 0
    while begin < len(ends):
        end = max(begin + 1, int(np.searchsorted(ends, before + limit, "right")))
        yield range(run.start + begin, run.start + end)
        begin, before = end, int(ends[end - 1])


def _batches(rows: _Encoded, part: range, encoding: Encoding) -> list[OutgoingBatch]:
    stamps = rows.timestamps[part.start : part.stop]
    newest = int(stamps.max())
    header = new_header(encoding.codec, len(part), int(stamps[0]), newest)
    payload = _payload(rows, part)
    data = build_batch(header, compress(encoding.codec, payload) if encoding.codec else payload)
    if len(data) > encoding.bytes_max and len(part) > 1:
        middle = len(part) // 2
        return _batches(rows, part[:middle], encoding) + _batches(rows, part[middle:], encoding)
    return [OutgoingBatch(data, _offsets_of(rows, part), newest)]


def _payload(rows: _Encoded, part: range) -> memoryview:
    chosen = slice(part.start, part.stop)
    stamps = rows.timestamps[chosen] - rows.timestamps[part.start]
    deltas = np.arange(len(part))
    lengths = 1 + widths(zigzag(stamps)) + widths(zigzag(deltas)) + rows.sizes[chosen]
    # A zero as a varint is the byte of attributes.
    lead = [column[chosen] for column in rows.lead]
    heads = _rows_of_varints([lengths, np.zeros_like(deltas), stamps, deltas, *lead])
    joined = _joined([heads, *(column.slice(part.start, len(part)) for column in rows.fields)])
    end = int(np.frombuffer(joined.buffers()[1], np.int32)[len(part)])
    return memoryview(joined.buffers()[2])[:end]


def _offsets_of(rows: _Encoded, part: range) -> Sequence[int]:
    offsets = rows.offsets[part.start : part.stop]
    first, last = int(offsets[0]), int(offsets[-1])
    found: Any = range(first, last + 1) if last - first + 1 == len(part) else offsets.tolist()
    return found  # type: ignore[no-any-return]  # of integers
