"""Shows what a chain makes of records, one by one: left out, changed, or the reason why it fails. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkmirror.batches.arrow import to_arrow
from sparkmirror.batches.arrow_schema import SCHEMA
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.transforms.chain import Chain
from sparkmirror.transforms.function import FunctionFailedError
from sparkmirror.transforms.partition_change import PartitionChange

Row = dict[str, Any]
"""A record by columns of `SCHEMA`; names of headers are bytes."""

_HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.binary()), pa.field("value", pa.binary())]))


class Tried(NamedTuple):
    """A record before and after; `after` is None where it is left out, or fails for the reason."""

    before: Row
    after: Row | None
    failure: str | None = None

    @property
    def is_changed(self) -> bool:
        return self.after != self.before


def tried(
    batches: Sequence[FetchedBatch], partition: TopicPartition, offsets: range, chain: Chain | None
) -> Iterator[Tried]:
    """Try the records at these offsets, each alone. Raises CorruptBatchError."""
    records = to_arrow(batches, partition, SCHEMA.names, offsets)
    change = None if chain is None else PartitionChange(chain, partition)
    for at in range(records.num_rows):
        record = records.slice(at, 1)
        (before,) = _rows(record)
        try:
            rows = [before] if change is None else _rows(change.changed(record).records)
        except FunctionFailedError as error:
            yield Tried(before, None, str(error))
        else:
            yield Tried(before, rows[0] if rows else None)


def _rows(records: pa.RecordBatch) -> list[Row]:
    at = records.schema.get_field_index("headers")
    rows: list[Row] = records.set_column(at, "headers", records.column(at).cast(_HEADERS)).to_pylist()
    return rows
