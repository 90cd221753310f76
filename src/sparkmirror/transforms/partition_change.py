"""Applies a chain of transforms to the batches of one partition. Pure."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkmirror.batches.arrow import Opened, from_arrow, open_batches
from sparkmirror.batches.arrow_schema import BODIES, CLOSED, SCHEMA
from sparkmirror.batches.compression import decompress
from sparkmirror.batches.few_records import FewOpened
from sparkmirror.batches.record_batch import CODEC_MASK, HEADER_BYTES, FetchedBatch, OutgoingBatch
from sparkmirror.batches.reencoding import ChangeFailedError, Encoding
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.transforms import header_columns
from sparkmirror.transforms.chain import (
    Chain,
    DropHeaders,
    Filter,
    Function,
    HasHeaderKey,
    InsertHeader,
    Link,
    RecordIsTombstone,
    Transform,
)
from sparkmirror.transforms.function import FunctionFailedError, call
from sparkmirror.transforms.header_columns import Mask

_ALL, _CLOSED, _BODIES = SCHEMA.names, CLOSED.names, BODIES.names
_NO_TIME: Final = -1
"""The timestamp of records without one."""


class PartitionChange:
    """The chain of one source partition, whose topic it concerns."""

    def __init__(self, chain: Chain, partition: TopicPartition) -> None:
        self.tolerates = chain.tolerates
        self.filtered = 0
        self._links = chain.links
        self._partition = partition
        self._names = _names_looked_for(chain.links)
        has_function = any(isinstance(link.transform, Function) for link in chain.links)
        self._columns = _ALL if has_function else _CLOSED

    def concerns(self, batch: FetchedBatch, bytes_max: int) -> bool:
        """Whether records of the batch may change: it need not be opened where no name of a header occurs.

        Raises CorruptBatchError.
        """
        if self._names is None:
            return True
        codec = batch.header.attributes & CODEC_MASK
        plain = decompress(codec, batch.data[HEADER_BYTES:], bytes_max) if codec else batch.data
        return any(name.search(plain) for name in self._names)

    def apply(
        self, batches: Sequence[FetchedBatch], position: int, encoding: Encoding
    ) -> list[OutgoingBatch] | None:
        """The batches to write of the records from the position on; None where all are as they were.

        Raises CorruptBatchError and ChangeFailedError.
        """
        offsets = range(position, batches[-1].header.last_offset + 1)
        opened = open_batches(batches, offsets, encoding.decompressed_bytes_max)
        records = opened.columns(self._partition, self._columns)
        try:
            changed = self.changed(records)
        except FunctionFailedError as error:
            raise self._failed(opened, records, error, encoding) from error
        self.filtered += records.num_rows - changed.records.num_rows
        return None if changed.records is records else self._encoded(opened, changed, encoding)

    def _failed(
        self,
        opened: Opened | FewOpened,
        records: pa.RecordBatch,
        error: FunctionFailedError,
        encoding: Encoding,
    ) -> ChangeFailedError:
        """Find the record with which the chain fails, and change those before it."""
        before, good, bad = Changed(records.slice(0, 0)), 0, records.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                before, good = self.changed(records.slice(0, middle)), middle
            except FunctionFailedError as earlier:
                bad, error = middle, earlier
        self.filtered += good - before.records.num_rows
        offset = records.column("offset")[good].as_py()
        return ChangeFailedError(offset, str(error), self._encoded(opened, before, encoding))

    def changed(self, records: pa.RecordBatch) -> "Changed":
        """The records behind the chain; the same object where all are as they were."""
        changed = Changed(records)
        for link in self._links:
            rows = _rows(link, changed.records)
            if rows.any():
                changed = _applied(link.transform, changed, rows)
        return changed

    def _encoded(
        self, opened: Opened | FewOpened, changed: "Changed", encoding: Encoding
    ) -> list[OutgoingBatch]:
        records = changed.records
        if not records.num_rows:
            return []
        kept = opened.at(records.column("offset").to_numpy())
        if changed.are_same:
            return kept.packed(encoding)
        if self._columns is _CLOSED:
            headers = records.column("headers")
            records = kept.columns(self._partition, _BODIES).append_column("headers", headers)
        return from_arrow(records, encoding, _NO_TIME)


class Changed(NamedTuple):
    """The records that are left; with `are_same` they are as they were."""

    records: pa.RecordBatch
    are_same: bool = True


def _names_looked_for(links: Sequence[Link]) -> Sequence[re.Pattern[bytes]] | None:
    """Names without one of which the chain changes nothing; None where it may all the same."""
    found: list[bytes] = []
    for link in links:
        if isinstance(link.predicate, HasHeaderKey) and not link.negates:
            found.append(link.predicate.name.encode())
        elif isinstance(link.transform, DropHeaders):
            found += [name.encode() for name in link.transform.names]
        else:
            return None
    return [re.compile(re.escape(name)) for name in found]


def _rows(link: Link, records: pa.RecordBatch) -> Mask:
    """The records that the link is applied to. Names of topics have been looked at before."""
    match link.predicate:
        case HasHeaderKey(name):
            found = header_columns.rows_with(records.column("headers"), name)
        case RecordIsTombstone():
            found = _tombstones(records).to_numpy(zero_copy_only=False)
        case _:
            return np.ones(records.num_rows, np.bool_)
    return ~found if link.negates else found


def _tombstones(records: pa.RecordBatch) -> pa.Array:
    is_closed = "tombstone" in records.schema.names
    return records.column("tombstone") if is_closed else records.column("value").is_null()


def _applied(transform: Transform, changed: Changed, rows: Mask) -> Changed:
    records = changed.records
    match transform:
        case Filter():
            return changed._replace(records=records.filter(pa.array(~rows)))
        case Function(reference):
            called, are_same = _called(reference, records, rows)
            return Changed(called, changed.are_same and are_same)
    headers = records.column("headers")
    match transform:
        case DropHeaders(names):
            new = header_columns.without(headers, names, rows)
        case InsertHeader(name, value):
            new = header_columns.with_added(headers, name, value, rows)
    if new is headers:
        return changed
    at = records.schema.get_field_index("headers")
    return Changed(records.set_column(at, records.schema.field(at), new), are_same=False)


def _called(reference: str, records: pa.RecordBatch, rows: Mask) -> tuple[pa.RecordBatch, bool]:
    if rows.all():
        return call(reference, records)
    chosen = records.filter(pa.array(rows))
    changed, are_same = call(reference, chosen)
    if changed is chosen:
        return records, are_same
    joined = pa.concat_batches([records.filter(pa.array(~rows)), changed])
    return joined.take(pa.array(np.argsort(joined.column("offset").to_numpy()))), are_same
