"""Reads one side of a comparison: a partition's batches, opened only where necessary."""

from collections import deque
from collections.abc import Iterable

from sparkmirror.batches.compression import decompress
from sparkmirror.batches.record_batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME, FetchedBatch
from sparkmirror.batches.records import naming_offset
from sparkmirror.verify.records import Record, Records, Span

_OPENED_BYTES_MAX = 1 << 20
"""The most bytes of batches that are opened together."""
_RECENT_RECORDS = 50_000
_RECENT_BYTES = 16 << 20
"""The records before the current one among which a second copy is recognized."""


class Side:
    """Batches and opened records of a span, in order. `opened` comes before `batch`."""

    def __init__(self, batches: Iterable[FetchedBatch], span: Span, *, timestamps: bool) -> None:
        self._batches = iter(batches)
        self._span = span
        self.timestamps = timestamps
        self.opened = Records()
        self.batch: FetchedBatch | None = None
        """The next one that is not opened."""
        self._advance()

    def whole_batch(self) -> FetchedBatch | None:
        """The next batch, if all of it is unread and inside the span."""
        batch = self.batch
        return batch if batch is not None and not self.opened and self._span.holds(batch) else None

    def pop_batch(self) -> None:
        self._advance()

    def open(self, count: int, together: int = 0) -> int:
        """Open batches until so many records are in `opened`, or all; how many there are.

        If any has to be opened, then as many as hold `together` records, within reason.
        """
        while len(self.opened) < count and self.batch is not None:
            batches = self._pop_batches(max(count - len(self.opened), together))
            self.opened.add(batches, self._span, timestamps=self.timestamps)
        return len(self.opened)

    def _pop_batches(self, count: int) -> list[FetchedBatch]:
        """At least one, and as many as hold so many records, within `_OPENED_BYTES_MAX`."""
        batches: list[FetchedBatch] = []
        size = 0
        while self.batch is not None and count > 0 and size < _OPENED_BYTES_MAX:
            batches.append(self.batch)
            count -= self.batch.header.record_count
            size += len(self.batch.data)
            self._advance()
        return batches

    def _advance(self) -> None:
        self.batch = next(self._batches, None)


class SourceSide(Side):
    """Also keeps recent batches, to recognize second copies on the target."""

    def __init__(self, batches: Iterable[FetchedBatch], span: Span, *, timestamps: bool) -> None:
        self._recent: deque[FetchedBatch] = deque()
        self._recent_records = self._recent_bytes = 0
        self._index: dict[int, int] = {}
        super().__init__(batches, span, timestamps=timestamps)

    def recent_offset(self, record: Record) -> int | None:
        """The recent offset of this record on the source, before the next one."""
        before = Records()
        before.add(self._recent, self._span, timestamps=self.timestamps)
        self._recent.clear()
        self._recent_records = self._recent_bytes = 0
        for offset, content in zip(before.offsets, before.contents, strict=True):
            self._index.setdefault(hash(content), offset)
        while len(self._index) > _RECENT_RECORDS:
            del self._index[next(iter(self._index))]
        found = self._index.get(hash(record.content))
        is_past = found is not None and (not self.opened or found < self.opened.offsets[0])
        return found if is_past else None

    def _advance(self) -> None:
        if self.batch is not None:
            self._recent.append(self.batch)
            self._recent_records += self.batch.header.record_count
            self._recent_bytes += len(self.batch.data)
            while self._recent_records > _RECENT_RECORDS or self._recent_bytes > _RECENT_BYTES:
                oldest = self._recent.popleft()
                self._recent_records -= oldest.header.record_count
                self._recent_bytes -= len(oldest.data)
        super()._advance()


def same_bytes(source: FetchedBatch, target: FetchedBatch, *, timestamps: bool) -> bool:
    """Whether two batches hold the same records by equal bytes, decompressed if necessary."""
    source_header, target_header = source.header, target.header
    if source_header.record_count != target_header.record_count:
        return False
    if timestamps and (
        source_header.base_timestamp != target_header.base_timestamp
        or (source_header.attributes | target_header.attributes) & LOG_APPEND_TIME
    ):
        return False
    codecs = source_header.attributes & CODEC_MASK, target_header.attributes & CODEC_MASK
    if codecs[0] == codecs[1]:
        # Copied, because views are compared byte by byte.
        return bytes(source.data[HEADER_BYTES:]) == bytes(target.data[HEADER_BYTES:])
    return _unpacked(source, codecs[0]) == _unpacked(target, codecs[1])


def _unpacked(batch: FetchedBatch, codec: int) -> bytes:
    with naming_offset(batch.header.base_offset):
        return bytes(decompress(codec, batch.data[HEADER_BYTES:]))
