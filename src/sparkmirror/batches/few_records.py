"""Reads few records as Arrow record batches, one by one: columns cost most of a millisecond. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sparkmirror.batches.arrow_schema import HEADERS, schema_of, timestamps_of
from sparkmirror.batches.columns import Column
from sparkmirror.batches.record_batch import LOG_APPEND_TIME, FetchedBatch, OutgoingBatch
from sparkmirror.batches.record_body import RecordBody, read_body, read_to_headers
from sparkmirror.batches.records import RawRecord
from sparkmirror.batches.reencoding import Encoding, records_from, write_records
from sparkmirror.domain.ids import TopicPartition

FEW_RECORDS: Final = 50
"""Fewer are faster one by one."""


@dataclass(frozen=True, slots=True)
class FewOpened:
    """Does as `arrow.Opened`. `kinds` are the records' `timestampType`."""

    records: Sequence[RawRecord]
    kinds: Sequence[int]

    @classmethod
    def of(cls, batches: Sequence[FetchedBatch], offsets: range, bytes_max: int) -> "FewOpened":
        records = records_from(batches, offsets.start, bytes_max)
        chosen = [record for record in records if record.offset < offsets.stop]
        return cls(chosen, list(_kinds(batches, chosen)))

    def __len__(self) -> int:
        return len(self.records)

    def at(self, offsets: Column) -> "FewOpened":
        """Return the records at these offsets, which it has."""
        chosen = set(offsets.tolist())
        kept = [place for place in zip(self.records, self.kinds, strict=True) if place[0].offset in chosen]
        return FewOpened([record for record, _ in kept], [kind for _, kind in kept])

    def packed(self, encoding: Encoding) -> list[OutgoingBatch]:
        """All records as they are."""
        return write_records(self.records, encoding)

    def columns(self, partition: TopicPartition, names: Sequence[str]) -> pa.RecordBatch:
        """Decode these columns of `SCHEMA`, `CLOSED` and `BODIES`. Raises CorruptBatchError."""
        columns = list(self._columns(partition, names))
        return pa.RecordBatch.from_arrays(columns, schema=schema_of(tuple(names)))

    def _columns(self, partition: TopicPartition, names: Sequence[str]) -> Iterator[pa.Array]:
        records, offsets = self.records, [record.offset for record in self.records]
        bodies = [read_body(record.body) for record in records] if _OPENED.intersection(names) else []
        for name in names:
            match name:
                case "key" | "value" | "tombstone" | "headers":
                    yield _of_bodies(name, bodies)
                case "body":
                    yield pa.array([read_to_headers(record.body) for record in records], pa.binary())
                case "topic":
                    yield pa.array([partition.topic] * len(records), pa.string())
                case "partition":
                    yield pa.array([partition.partition] * len(records), pa.int32())
                case "offset":
                    yield pa.array(offsets, pa.int64())
                case "timestamp":
                    yield timestamps_of(np.array([it.timestamp for it in records], np.int64), offsets)
                case "timestampType":
                    yield pa.array(self.kinds, pa.int32())


_OPENED: Final = frozenset({"key", "value", "tombstone", "headers"})


def _kinds(batches: Sequence[FetchedBatch], records: Sequence[RawRecord]) -> Iterator[int]:
    at = 0
    for record in records:
        while record.offset > batches[at].header.last_offset:
            at += 1
        yield int(batches[at].header.attributes & LOG_APPEND_TIME != 0)


def _of_bodies(name: str, bodies: Sequence[RecordBody]) -> pa.Array:
    match name:
        case "key":
            return pa.array([body.key for body in bodies], pa.binary())
        case "value":
            return pa.array([body.value for body in bodies], pa.binary())
        case "tombstone":
            return pa.array([body.value is None for body in bodies], pa.bool_())
        case _:
            return _headers(bodies)


def _headers(bodies: Sequence[RecordBody]) -> pa.Array:
    counts = [len(body.headers) for body in bodies]
    if not any(counts):
        return pa.nulls(len(bodies), HEADERS)
    all_of_them = [header for body in bodies for header in body.headers]
    # Not checked to be UTF-8.
    keys = pa.array([key for key, _ in all_of_them], pa.binary()).view(pa.string())
    values = pa.array([value for _, value in all_of_them], pa.binary())
    entries = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    edges = pa.array(np.cumsum([0, *counts]), pa.int32())
    nulls = pa.array([count == 0 for count in counts])
    return pa.ListArray.from_arrays(edges, entries, type=HEADERS, mask=nulls)
