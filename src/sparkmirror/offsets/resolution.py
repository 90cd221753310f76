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
from itertools import chain, islice, takewhile
from typing import Final

from sparkmirror.batches.agreement.alignment import Alignment, EqualBatches
from sparkmirror.batches.agreement.compared_log import ComparedLog, Span
from sparkmirror.batches.record_batch import CONTROL, LOG_APPEND_TIME, FetchedBatch
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
    for run in _matches(gap, source, target):
        if not runs and not _agrees(gap.after, run):
            break
        if runs and runs[-1].continues_with(run):
            run = runs.pop().and_then(run)  # noqa: PLW2901
        runs.append(run)
        if run.last_upstream >= upstream:
            break
    return list(runs)


def _matches(gap: Gap, source: Iterable[FetchedBatch], target: Iterable[FetchedBatch]) -> Iterator[Run]:
    copies, timestamps = _one_kind_of_time(_until_hole(gap, target))
    (after, begin), (before, end) = gap
    alignment = Alignment(
        ComparedLog(source, Span(after, before), timestamps=timestamps),
        ComparedLog(copies, Span(begin, end), timestamps=timestamps),
    )
    for equal in alignment.copies():
        if isinstance(equal, EqualBatches):
            header = equal.target.header
            yield Run(equal.source.header.base_offset, header.base_offset, header.record_count)
        else:
            for offset, copied_to in zip(equal.source_offsets, equal.target_offsets, strict=True):
                yield Run(offset, copied_to, 1)


def _agrees(known: Known, first: Run) -> bool:
    """Whether the first match is no contradiction: the record before the gap is where the sync puts it."""
    return (first.first_upstream == known.upstream) == (first.first_downstream == known.downstream)


def _one_kind_of_time(batches: Iterator[FetchedBatch]) -> tuple[Iterable[FetchedBatch], bool]:
    """The batches up to where the target's broker began to stamp its own timestamps, and whether they count.

    From there on only a later look, which begins with such a batch, can ignore them: the record before the
    gap may be the only one of its batch.
    """
    first = list(islice(batches, 2))
    if any(map(_is_stamped, first)):
        return chain(first, batches), False
    return chain(first, takewhile(lambda batch: not _is_stamped(batch), batches)), True


def _is_stamped(batch: FetchedBatch) -> bool:
    return bool(batch.header.attributes & LOG_APPEND_TIME)


def _until_hole(gap: Gap, batches: Iterable[FetchedBatch]) -> Iterator[FetchedBatch]:
    """The target's batches of a gap up to the first hole, which the cleaner or retention made."""
    expected = gap.after.downstream
    for batch in batches:
        header = batch.header
        if header.last_offset < expected:
            continue
        if header.base_offset > expected or header.base_offset >= gap.before.downstream:
            return
        if not header.is_contiguous:
            return
        expected = header.last_offset + 1
        if not header.attributes & CONTROL:
            yield batch
