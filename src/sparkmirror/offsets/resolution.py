"""Finds records between two offset syncs on the target, by comparing both logs there.

Records are matched in order, each with the first equal one on the target behind the match before. Every
record of the source that is left was copied, in order, and the target has lost nothing there: so its true
place can only be the same or a later one, and a group that continues right behind a match skips nothing,
whatever compaction took from the source, whatever came twice, whichever client wrote between. What can't be
shown (a hole in the target's log, a record that is not there) ends the matching: what was found before it
holds.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    FetchedBatch,
)
from sparkmirror.batches.records import RawRecord, read_records
from sparkmirror.offsets.offset_runs import Gap, Known, Run


class ResolveOffsets(Enum):
    """`translation.resolve`: the groups for which logs are read."""

    OFF = "off"
    ACTIVE = "active"
    ALL = "all"


_RUNS_KEPT: Final = 2
"""One that ends before an offset, and the one that holds or follows it."""


def resolve(
    gap: Gap, upstream: int, source: Iterable[FetchedBatch], target: Iterable[FetchedBatch]
) -> list[Run]:
    """The runs around an offset inside the gap, or as near to it as can be shown: at most two.

    `source` holds what a mirror copies (no control batches, nothing that was aborted where it reads
    committed) from the record before the gap on, `target` everything from there on. Both are taken only as
    far as needed. Raises CorruptBatchError.
    """
    runs: deque[Run] = deque(maxlen=_RUNS_KEPT)
    for run in _matches(gap, upstream, source, _TargetLog(gap, target)):
        if runs and runs[-1].goes_on_with(run):
            run = runs.pop().and_then(run)  # noqa: PLW2901
        runs.append(run)
    return list(runs)


def _matches(gap: Gap, upstream: int, source: Iterable[FetchedBatch], log: "_TargetLog") -> Iterator[Run]:
    """In order, up to the first that is at the offset or behind it."""
    is_first = True
    for batch in source:
        if batch.header.base_offset > gap.after.upstream and (run := log.take_equal(batch)):
            yield run
            is_first = False
            if run.last_upstream >= upstream:
                return
            continue
        for record in read_records(batch):
            if not gap.after.upstream <= record.offset < gap.before.upstream:
                continue
            at = log.find(record)
            if at is None or (is_first and not _agrees(gap.after, record.offset, at)):
                return
            is_first = False
            yield Run(record.offset, at, 1)
            if record.offset >= upstream:
                return


def _agrees(known: Known, upstream: int, downstream: int) -> bool:
    """Whether the first match is no contradiction: the record before the gap is where the sync puts it."""
    return (upstream == known.upstream) == (downstream == known.downstream)


class _TargetLog:
    """The target's records of a gap, up to the first hole, which the cleaner or retention made."""

    def __init__(self, gap: Gap, batches: Iterable[FetchedBatch]) -> None:
        self._gap = gap
        self._batches = self._whole(batches)
        self._next = next(self._batches, None)
        self._opened: deque[RawRecord] = deque()
        self._is_stamped = False
        """Whether the target gives records times of its own."""

    def take_equal(self, batch: FetchedBatch) -> Run | None:
        """Take the next batch if it's a copy of this one, byte for byte: then neither has to be opened."""
        copy = self._next
        if self._opened or copy is None or not batch.header.is_contiguous:
            return None
        header = copy.header
        is_inside = self._gap.after.downstream < header.base_offset and (
            header.last_offset < self._gap.before.downstream
        )
        if not is_inside or batch.header.last_offset >= self._gap.before.upstream:
            return None
        if _contents(copy) != _contents(batch):
            return None
        self._next = next(self._batches, None)
        return Run(batch.header.base_offset, header.base_offset, header.record_count)

    def find(self, record: RawRecord) -> int | None:
        """Take everything up to and including the first equal record, and return where that is."""
        while self._open():
            found = self._opened.popleft()
            if found.body == record.body and (self._is_stamped or found.timestamp == record.timestamp):
                return found.offset
        return None

    def _open(self) -> bool:
        """Whether there is another record."""
        while not self._opened and self._next is not None:
            self._is_stamped = bool(self._next.header.attributes & LOG_APPEND_TIME)
            first, last = self._gap.after.downstream, self._gap.before.downstream
            self._opened.extend(
                record for record in read_records(self._next) if first <= record.offset < last
            )
            self._next = next(self._batches, None)
        return bool(self._opened)

    def _whole(self, batches: Iterable[FetchedBatch]) -> Iterator[FetchedBatch]:
        expected = self._gap.after.downstream
        for batch in batches:
            header = batch.header
            if header.last_offset < expected:
                continue
            if header.base_offset > expected or header.base_offset >= self._gap.before.downstream:
                return
            if not header.is_contiguous:
                return
            expected = header.last_offset + 1
            if not header.attributes & CONTROL:
                yield batch


def _contents(batch: FetchedBatch) -> tuple[object, ...]:
    header = batch.header
    return (
        header.record_count,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.attributes & (CODEC_MASK | LOG_APPEND_TIME),
        bytes(batch.data[HEADER_BYTES:]),  # views are compared item by item
    )
