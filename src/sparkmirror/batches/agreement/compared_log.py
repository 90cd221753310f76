"""Reads one of two logs that are compared: its batches in order, opened only where necessary.

Opened records are held in columns: a comparison passes millions of them and inspects few.
"""

from collections.abc import Iterable, Sequence
from itertools import compress, count, islice
from operator import ne
from typing import NamedTuple

from sparkmirror.batches.agreement.equality import RecordKey, record_keys
from sparkmirror.batches.columns import index_records
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.batches.records import read_together
from sparkmirror.batches.reencoding import MANY_RECORDS
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError

_OPENED_BYTES_MAX = 1 << 20
"""The most bytes of batches that are opened together."""
_HELD_TIMES = 4
"""The most bytes that are held while records differ, in multiples of those opened at a time."""


class Span(NamedTuple):
    """Offsets from `first` up to, not including, `end`."""

    first: int
    end: int

    def holds(self, batch: FetchedBatch) -> bool:
        """Whether all of the batch is inside."""
        return self.first <= batch.header.base_offset and batch.header.last_offset < self.end


END = 1 << 62
"""An offset greater than every other."""


class GaveUpError(Exception):
    """The rest is not worth comparing; the message is the reason."""


class Record(NamedTuple):
    offset: int
    key: RecordKey
    """The `RecordKey` by which records are compared, not the key of the record."""
    producer_id: int

    @property
    def timestamp(self) -> int:
        return self.key[0]

    @property
    def body(self) -> bytes:
        return self.key[1]


class Records:
    """Records in the order of a log: added behind, taken from the front."""

    def __init__(self, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> None:
        """Batches that have more than so many bytes are not opened."""
        self._bytes_max = decompressed_bytes_max
        self.offsets: list[int] = []
        self.keys: list[RecordKey] = []
        self._producer_ids: list[int] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, batches: Sequence[FetchedBatch], span: Span, *, timestamps: bool) -> Sequence[FetchedBatch]:
        """Open batches, and take their records inside the span. Batches that would be too much are returned.

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
        keys = record_keys(times, bodies, timestamps=timestamps)
        producer_ids = [
            batch.header.producer_id for batch in batches for _ in range(batch.header.record_count)
        ]
        if offsets and (min(offsets) < span.first or max(offsets) >= span.end):
            inside = [span.first <= offset < span.end for offset in offsets]
            offsets, keys = list(compress(offsets, inside)), list(compress(keys, inside))
            producer_ids = list(compress(producer_ids, inside))
        self.offsets += offsets
        self.keys += keys
        self._producer_ids += producer_ids

    def take(self, count: int) -> list[Record]:
        columns = (self.offsets, self.keys, self._producer_ids)
        taken = [Record(*fields) for fields in zip(*(column[:count] for column in columns), strict=True)]
        self.drop(count)
        return taken

    def drop(self, count: int) -> None:
        for column in (self.offsets, self.keys, self._producer_ids):
            del column[:count]

    def equal_beginning(self, other: "Records") -> int:
        """The count of records that are the same on both sides before the first that is not."""
        first_unequal = compress(count(), map(ne, self.keys, other.keys))
        return next(first_unequal, min(len(self), len(other)))

    def bytes_of(self, count: int) -> int:
        """The size of the first bodies."""
        return sum(len(body) for _, body in islice(self.keys, count))


class ComparedLog:
    """Batches and opened records of a span, in order. `opened` comes before `batch`."""

    def __init__(
        self,
        batches: Iterable[FetchedBatch],
        span: Span,
        *,
        timestamps: bool,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        """`decompressed_bytes_max` is for all that is opened at a time."""
        self._batches = iter(batches)
        self.span = span
        self.timestamps = timestamps
        self.decompressed_bytes_max = decompressed_bytes_max
        self.opened = Records(decompressed_bytes_max)
        self._popped: Sequence[FetchedBatch] = ()
        """Between `opened` and `batch`: they were too large to be opened with those before."""
        self._upcoming: FetchedBatch | None = None
        self._is_read = False
        """Whether `_upcoming` is the next batch. It is read when it is looked at: that may be a fetch."""

    @property
    def batch(self) -> FetchedBatch | None:
        """The next one that is not opened."""
        if not self._is_read:
            self._upcoming, self._is_read = next(self._batches, None), True
        return self._upcoming

    @property
    def next_offset(self) -> int:
        """The offset of the next record, or the end of the span."""
        return self.opened.offsets[0] if self.open(1) else self.span.end

    @property
    def unread(self) -> int:
        """The offset before which no record is left. It does not open a batch, as `next_offset` may."""
        if self.opened:
            return self.opened.offsets[0]
        batch = self._popped[0] if self._popped else self.batch
        return self.span.end if batch is None else batch.header.base_offset

    def whole_batch(self) -> FetchedBatch | None:
        """The next batch, if all of it is unread and inside the span."""
        batch, is_next = self.batch, not self.opened and not self._popped
        return batch if batch is not None and is_next and self.span.holds(batch) else None

    def pop_batch(self) -> None:
        assert self._is_read
        self._is_read = False

    def open(self, count: int, together: int = 0) -> int:
        """Open batches until so many records are in `opened`, or all; how many there are.

        If any has to be opened, then as many as hold `together` records, within reason. Raises GaveUpError
        where records that differ are too large to be held.
        """
        while len(self.opened) < count and (self._popped or self.batch is not None):
            if self.opened.bytes_of(len(self.opened)) > _HELD_TIMES * self.decompressed_bytes_max:
                raise GaveUpError(
                    f"from offset {self.opened.offsets[0]} on, {len(self.opened)} records that differ have "
                    f"more than {_HELD_TIMES} times batch.decompressed.bytes.max"
                )
            batches = self._popped or self._pop_batches(max(count - len(self.opened), together))
            self._popped = self.opened.add(batches, self.span, timestamps=self.timestamps)
        return len(self.opened)

    def _pop_batches(self, count: int) -> list[FetchedBatch]:
        """Take at least one batch, and as many as hold so many records, within `_OPENED_BYTES_MAX`."""
        batches: list[FetchedBatch] = []
        size = 0
        while count > 0 and size < _OPENED_BYTES_MAX and (batch := self.batch) is not None:
            batches.append(batch)
            count -= batch.header.record_count
            size += len(batch.data)
            self.pop_batch()
        return batches


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
