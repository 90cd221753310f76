"""Keeps the last batches of one side of a comparison, bounded, and opens them only when asked."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.verify.records import Content, Records, Span

RECENT_RECORDS = 50_000
_RECENT_BYTES = 16 << 20


class Recent:
    """Batches in the order of the log. `is_whole` until the first one is dropped."""

    def __init__(self, span: Span, *, timestamps: bool, decompressed_bytes_max: int) -> None:
        self._span = span
        self._timestamps = timestamps
        self._decompressed_bytes_max = decompressed_bytes_max
        self._batches: list[FetchedBatch] = []
        self._first = 0
        """The place of the first batch that is kept: what is before it is removed now and then."""
        self._records = self._bytes = 0
        self._opened: tuple[int, Records] | None = None
        """The batch that was opened last, by its base offset."""
        self.is_whole = True

    def add(self, batch: FetchedBatch) -> None:
        self._batches.append(batch)
        self._records += batch.header.record_count
        self._bytes += len(batch.data)
        while self._records > RECENT_RECORDS or self._bytes > _RECENT_BYTES:
            oldest = self._batches[self._first]
            self._first += 1
            self.is_whole = False
            self._records -= oldest.header.record_count
            self._bytes -= len(oldest.data)
        if self._first > len(self._batches) // 2:
            del self._batches[: self._first]
            self._first = 0

    def since(self, offset: int) -> Sequence[FetchedBatch]:
        """The batches that begin at this offset or behind it."""
        return self._batches[max(self._first, self._place(offset)) :]

    def records_before(self, offset: int) -> Iterator[tuple[int, Content]]:
        """Offsets and contents, the newest first. Raises CorruptBatchError."""
        for at in range(self._place(offset) - 1, self._first - 1, -1):
            opened = self._open(self._batches[at])
            for place in range(bisect_left(opened.offsets, offset) - 1, -1, -1):
                yield opened.offsets[place], opened.contents[place]

    def _place(self, offset: int) -> int:
        return bisect_left(self._batches, offset, key=lambda batch: batch.header.base_offset)

    def _open(self, batch: FetchedBatch) -> Records:
        base_offset = batch.header.base_offset
        if self._opened is None or self._opened[0] != base_offset:
            opened = Records(self._decompressed_bytes_max)
            opened.add([batch], self._span, timestamps=self._timestamps)
            self._opened = base_offset, opened
        return self._opened[1]
