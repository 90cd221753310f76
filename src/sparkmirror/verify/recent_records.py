"""Keeps the last batches of one side of a comparison, bounded, and opens them only when asked.

Pure.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from sparkmirror.batches.agreement.compared_log import Records, Span
from sparkmirror.batches.agreement.equality import RecordKey
from sparkmirror.batches.record_batch import FetchedBatch
from sparkmirror.verify.rules_and_result import Rules

_RECENT_RECORDS = 50_000
_RECENT_BYTES = 16 << 20


class RecentRecords:
    """Batches in the order of the log. `is_whole` until the first one is dropped."""

    def __init__(self, span: Span, rules: Rules) -> None:
        self._span = span
        self._timestamps = rules.timestamps
        self._decompressed_bytes_max = rules.decompressed_bytes_max
        self._batches: list[FetchedBatch] = []
        self._first = 0
        """The place of the first batch that is kept: what is before it is removed now and then."""
        self._records = self._bytes = 0
        self._opened: tuple[int, Records] | None = None
        """The batch that was opened last, by its base offset."""
        self._index: dict[int, int] = {}
        """The first offset of each record, by the hash of its key."""
        self._indexed_end = 0
        self.is_whole = True

    def keep(self, batches: Iterable[FetchedBatch]) -> Iterator[FetchedBatch]:
        """Pass batches on, and keep each from when the next one is taken."""
        for batch in batches:
            yield batch
            self._add(batch)

    def _add(self, batch: FetchedBatch) -> None:
        self._batches.append(batch)
        self._records += batch.header.record_count
        self._bytes += len(batch.data)
        while self._records > _RECENT_RECORDS or self._bytes > _RECENT_BYTES:
            oldest = self._batches[self._first]
            self._first += 1
            self.is_whole = False
            self._records -= oldest.header.record_count
            self._bytes -= len(oldest.data)
        if self._first > len(self._batches) // 2:
            del self._batches[: self._first]
            self._first = 0

    def offset_of(self, key: RecordKey) -> int | None:
        """The first recent offset of a record. Raises CorruptBatchError."""
        added: Sequence[FetchedBatch] = self._batches[max(self._first, self._place(self._indexed_end)) :]
        if added:
            self._indexed_end = added[-1].header.last_offset + 1
        while added:
            opened = Records(self._decompressed_bytes_max)
            added = opened.add(added, self._span, timestamps=self._timestamps)
            for offset, each in zip(opened.offsets, opened.keys, strict=True):
                self._index.setdefault(hash(each), offset)
        while len(self._index) > _RECENT_RECORDS:
            del self._index[next(iter(self._index))]
        return self._index.get(hash(key))

    def records_before(self, offset: int) -> Iterator[tuple[int, RecordKey]]:
        """Offsets and keys, the newest first. Raises CorruptBatchError."""
        for at in range(self._place(offset) - 1, self._first - 1, -1):
            opened = self._open(self._batches[at])
            for place in range(bisect_left(opened.offsets, offset) - 1, -1, -1):
                yield opened.offsets[place], opened.keys[place]

    def _place(self, offset: int) -> int:
        return bisect_left(self._batches, offset, key=lambda batch: batch.header.base_offset)

    def _open(self, batch: FetchedBatch) -> Records:
        base_offset = batch.header.base_offset
        if self._opened is None or self._opened[0] != base_offset:
            opened = Records(self._decompressed_bytes_max)
            opened.add([batch], self._span, timestamps=self._timestamps)
            self._opened = base_offset, opened
        return self._opened[1]
