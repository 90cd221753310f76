"""Holds opened records in columns: a comparison passes millions of them and inspects few. Pure."""

from collections.abc import Sequence
from itertools import compress, count, islice
from operator import ne
from typing import NamedTuple

from sparkmirror.batches.columns import index_records
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.batches.records import read_together
from sparkmirror.batches.reencoding import MANY_RECORDS
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError

Content = tuple[int, bytes]
"""A timestamp (ms, 0 where timestamps don't count), and key, value and headers as on the wire.

Equal for records that are the same.
"""


class Span(NamedTuple):
    """Offsets from `first` up to, not including, `end`."""

    first: int
    end: int

    def holds(self, batch: FetchedBatch) -> bool:
        """Whether all of the batch is inside."""
        return self.first <= batch.header.base_offset and batch.header.last_offset < self.end


END = 1 << 62
"""Behind every offset."""


class Record(NamedTuple):
    offset: int
    content: Content
    producer_id: int

    @property
    def timestamp(self) -> int:
        return self.content[0]

    @property
    def body(self) -> bytes:
        return self.content[1]


class Records:
    """Records in the order of a log: added behind, taken from the front."""

    def __init__(self, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> None:
        """Batches that have more than so many bytes are not opened."""
        self._bytes_max = decompressed_bytes_max
        self.offsets: list[int] = []
        self.contents: list[Content] = []
        self._producer_ids: list[int] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, batches: Sequence[FetchedBatch], span: Span, *, timestamps: bool) -> Sequence[FetchedBatch]:
        """Open batches, and take their records inside the span. Those that would be too much are returned.

        Raises CorruptBatchError with the offset.
        """
        try:
            self._add(batches, span, timestamps=timestamps)
        except CorruptBatchError as error:
            if len(batches) == 1:
                raise CorruptBatchError(f"offset {batches[0].header.base_offset}: {error}") from error
            half = len(batches) // 2
            return [*self.add(batches[:half], span, timestamps=timestamps), *batches[half:]]
        return []

    def _add(self, batches: Sequence[FetchedBatch], span: Span, *, timestamps: bool) -> None:
        offsets, times, bodies = _columns(batches, self._bytes_max)
        contents = list(zip(times if timestamps else [0] * len(bodies), bodies, strict=True))
        producer_ids = [
            batch.header.producer_id for batch in batches for _ in range(batch.header.record_count)
        ]
        if offsets and (min(offsets) < span.first or max(offsets) >= span.end):
            inside = [span.first <= offset < span.end for offset in offsets]
            offsets, contents = list(compress(offsets, inside)), list(compress(contents, inside))
            producer_ids = list(compress(producer_ids, inside))
        self.offsets += offsets
        self.contents += contents
        self._producer_ids += producer_ids

    def take(self, count: int) -> list[Record]:
        columns = (self.offsets, self.contents, self._producer_ids)
        taken = [Record(*fields) for fields in zip(*(column[:count] for column in columns), strict=True)]
        self.drop(count)
        return taken

    def drop(self, count: int) -> None:
        for column in (self.offsets, self.contents, self._producer_ids):
            del column[:count]

    def equal_beginning(self, other: "Records") -> int:
        """The count of records that are the same on both sides before the first that is not."""
        first_unequal = compress(count(), map(ne, self.contents, other.contents))
        return next(first_unequal, min(len(self), len(other)))

    def bytes_of(self, count: int) -> int:
        """The size of the first bodies."""
        return sum(len(body) for _, body in islice(self.contents, count))


def _columns(batches: Sequence[FetchedBatch], bytes_max: int) -> tuple[list[int], list[int], list[bytes]]:
    """Offsets, timestamps, bodies."""
    if sum(batch.header.record_count for batch in batches) >= MANY_RECORDS:
        index = index_records(batches, bytes_max)
        return index.offsets.tolist(), index.timestamps.tolist(), index.bodies()
    records = read_together(batches, bytes_max)
    return (
        [record.offset for record in records],
        [record.timestamp for record in records],
        [record.body for record in records],
    )
