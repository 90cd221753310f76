"""One side of a comparison: a partition's batches, opened only where they have to be."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from sparkmirror.domain.compression import decompress
from sparkmirror.domain.record_batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME, FetchedBatch
from sparkmirror.domain.records import naming_offset, read_records

_RECENT_RECORDS = 50_000
_RECENT_BYTES = 16 << 20
"""How far back a second copy of a record is recognized."""


class Record(NamedTuple):
    """`timestamp` in ms, 0 where timestamps don't count; `body` is key, value and headers as on the wire."""

    offset: int
    timestamp: int
    body: bytes
    producer_id: int

    @property
    def content(self) -> Hashable:
        """Equal for records that are the same."""
        return self.timestamp, self.body


class Span(NamedTuple):
    """Offsets from `first` up to, not including, `end`."""

    first: int
    end: int

    def holds(self, batch: FetchedBatch) -> bool:
        """Whether all of the batch is inside."""
        return self.first <= batch.header.base_offset and batch.header.last_offset < self.end


END = 1 << 62
"""Behind every offset."""


class Side:
    """Batches and opened records of a span, in order. `opened` comes before `batch`."""

    def __init__(self, batches: Iterable[FetchedBatch], span: Span, *, timestamps: bool) -> None:
        self._batches = iter(batches)
        self._span = span
        self.timestamps = timestamps
        self.opened: deque[Record] = deque()
        self.batch: FetchedBatch | None = None
        """The next one that nobody has opened."""
        self._advance()

    def whole_batch(self) -> FetchedBatch | None:
        """What comes next if it's a whole batch inside the span."""
        batch = self.batch
        return batch if batch is not None and not self.opened and self._span.holds(batch) else None

    def pop_batch(self) -> None:
        self._advance()

    def open(self, count: int) -> int:
        """Open batches until so many records are in `opened`, or all; how many there are."""
        while len(self.opened) < count and self.batch is not None:
            self.opened.extend(self._records(self.batch))
            self._advance()
        return len(self.opened)

    def take(self, count: int) -> list[Record]:
        return [self.opened.popleft() for _ in range(count)]

    def _advance(self) -> None:
        self.batch = next(self._batches, None)

    def _records(self, batch: FetchedBatch) -> Iterator[Record]:
        return records_of(batch, self._span, timestamps=self.timestamps)


class SourceSide(Side):
    """Also remembers what came lately, so that second copies on the target can be told."""

    def __init__(self, batches: Iterable[FetchedBatch], span: Span, *, timestamps: bool) -> None:
        self._recent: deque[FetchedBatch] = deque()
        self._recent_records = self._recent_bytes = 0
        self._index: dict[int, int] = {}
        super().__init__(batches, span, timestamps=timestamps)

    def recent_offset(self, record: Record) -> int | None:
        """Where lately, before what comes next, the source had this record."""
        while self._recent:
            for before in self._records(self._forget()):
                self._index.setdefault(hash(before.content), before.offset)
        while len(self._index) > _RECENT_RECORDS:
            del self._index[next(iter(self._index))]
        offset = self._index.get(hash(record.content))
        is_past = not self.opened or (offset is not None and offset < self.opened[0].offset)
        return offset if is_past else None

    def _advance(self) -> None:
        if self.batch is not None:
            self._recent.append(self.batch)
            self._recent_records += self.batch.header.record_count
            self._recent_bytes += len(self.batch.data)
            while self._recent_records > _RECENT_RECORDS or self._recent_bytes > _RECENT_BYTES:
                self._forget()
        super()._advance()

    def _forget(self) -> FetchedBatch:
        batch = self._recent.popleft()
        self._recent_records -= batch.header.record_count
        self._recent_bytes -= len(batch.data)
        return batch


def records_of(batch: FetchedBatch, span: Span, *, timestamps: bool) -> Iterator[Record]:
    """The batch's records inside the span. Raises CorruptBatchError naming the offset."""
    with naming_offset(batch.header.base_offset):
        records = read_records(batch)
    producer_id = batch.header.producer_id
    for offset, timestamp, body in records:
        if span.first <= offset < span.end:
            yield Record(offset, timestamp if timestamps else 0, body, producer_id)


def same_bytes(source: FetchedBatch, target: FetchedBatch, *, timestamps: bool) -> bool:
    """Whether equal bytes, if need be unpacked, say that two batches hold the same records."""
    ours, theirs = source.header, target.header
    if ours.record_count != theirs.record_count:
        return False
    if timestamps and (
        ours.base_timestamp != theirs.base_timestamp
        or (ours.attributes | theirs.attributes) & LOG_APPEND_TIME
    ):
        return False
    codecs = ours.attributes & CODEC_MASK, theirs.attributes & CODEC_MASK
    if codecs[0] == codecs[1]:
        # Copied, because views are compared byte by byte.
        return bytes(source.data[HEADER_BYTES:]) == bytes(target.data[HEADER_BYTES:])
    return _unpacked(source, codecs[0]) == _unpacked(target, codecs[1])


def _unpacked(batch: FetchedBatch, codec: int) -> bytes:
    with naming_offset(batch.header.base_offset):
        return bytes(decompress(codec, batch.data[HEADER_BYTES:]))
