"""Applies a chain of transforms to the batches of one partition. Pure."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sparkmirror.batches.arrow import CLOSED, SCHEMA, from_arrow, to_arrow
from sparkmirror.batches.compression import decompress
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

_NO_TIME: Final = -1
"""Of records without a timestamp."""


class PartitionChange:
    """The chain of one source partition, whose topic it concerns."""

    def __init__(self, chain: Chain, partition: TopicPartition) -> None:
        self.tolerates = chain.tolerates
        self._links = chain.links
        self._partition = partition
        self._names = _names_looked_for(chain.links)
        has_function = any(isinstance(link.transform, Function) for link in chain.links)
        self._columns = (SCHEMA if has_function else CLOSED).names

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
        opened = to_arrow(batches, self._partition, self._columns, offsets, encoding.decompressed_bytes_max)
        try:
            changed = self.changed(opened)
        except FunctionFailedError as error:
            raise self._failed(opened, error, encoding) from error
        return None if changed is opened else _encoded(changed, encoding)

    def _failed(
        self, records: pa.RecordBatch, error: FunctionFailedError, encoding: Encoding
    ) -> ChangeFailedError:
        """Find the record with which the chain fails, and change those before it."""
        before, good, bad = records.slice(0, 0), 0, records.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                before, good = self.changed(records.slice(0, middle)), middle
            except FunctionFailedError as earlier:
                bad, error = middle, earlier
        offset = records.column("offset")[good].as_py()
        return ChangeFailedError(offset, str(error), _encoded(before, encoding))

    def changed(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The records behind the chain; the same object where all are as they were."""
        for link in self._links:
            rows = _rows(link, records)
            if rows.any():
                records = _applied(link.transform, records, rows)
        return records


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


def _applied(transform: Transform, records: pa.RecordBatch, rows: Mask) -> pa.RecordBatch:
    match transform:
        case Filter():
            return records.filter(pa.array(~rows))
        case Function(reference):
            return _called(reference, records, rows)
    headers = records.column("headers")
    match transform:
        case DropHeaders(names):
            changed = header_columns.without(headers, names, rows)
        case InsertHeader(name, value):
            changed = header_columns.with_added(headers, name, value, rows)
    if changed is headers:
        return records
    return records.set_column(
        records.schema.get_field_index("headers"), records.schema.field("headers"), changed
    )


def _called(reference: str, records: pa.RecordBatch, rows: Mask) -> pa.RecordBatch:
    if rows.all():
        return call(reference, records)
    chosen = records.filter(pa.array(rows))
    changed = call(reference, chosen)
    if changed is chosen:
        return records
    joined = pa.concat_batches([records.filter(pa.array(~rows)), changed])
    return joined.take(pa.array(np.argsort(joined.column("offset").to_numpy())))


def _encoded(records: pa.RecordBatch, encoding: Encoding) -> list[OutgoingBatch]:
    return from_arrow(records, encoding, _NO_TIME) if records.num_rows else []
