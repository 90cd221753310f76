"""Says which offset of the source follows the n-th record of a producer epoch.

Where records follow each other in the source it is counted: behind n more of them the offset is n more. A
`SequenceEnd` is noted where that does not hold: behind gaps of compaction and control batches, after a jump,
and in each leader epoch of the source.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch
from sparkmirror.domain.errors import SparkmirrorError

_FAR: Final = SEQUENCE_MODULUS // 2
"""An end is noted at least so often, so that sequences, which start again at 0, can't be mistaken."""

_RECORDS: Final = attrgetter("records")


class SequenceEnd(NamedTuple):
    """Behind so many records of a producer epoch, `offset` is the source's next one.

    The records from here to the next end were read from the source in its leader epoch `epoch`.
    """

    records: int
    offset: int
    epoch: int = -1

    @property
    def sequence(self) -> int:
        """The one of the next record."""
        return self.records % SEQUENCE_MODULUS

    def after(self, records: int) -> "SequenceEnd":
        """The end behind so many records in all, if nothing is missing between them."""
        return SequenceEnd(records, self.offset + records - self.records, self.epoch)


class NoSuchEndError(SparkmirrorError):
    """The records that are asked for are older than all known ends."""


def end_behind(ends: Sequence[SequenceEnd], next_sequence: int) -> SequenceEnd:
    """The end before the record of that sequence, from the ends of one epoch in their order, at least one.

    Right for at most 2^30 records behind the newest one. Raises NoSuchEndError.
    """
    count = _nearest(next_sequence, ends[-1].records)
    at = bisect_right(ends, count, key=_RECORDS)
    if at == 0:
        raise NoSuchEndError(f"sequence {next_sequence} is older than those that are known")
    return ends[at - 1].after(count)


def _nearest(sequence: int, count: int) -> int:
    """The count nearest to this one at which the next record has the sequence."""
    ahead = (sequence - count) % SEQUENCE_MODULUS
    return count + (ahead if ahead < _FAR else ahead - SEQUENCE_MODULUS)


class EndsAhead:
    """The ends of an epoch that is written with: those behind what is acknowledged, and of what follows.

    `take` tells which batches need a record of their ends first. It is called for each batch, so it compares
    numbers before it makes anything.
    """

    __slots__ = ("_ends", "_epoch", "_far", "_is_stale", "_records", "_shift")

    def __init__(self, start: SequenceEnd) -> None:
        self._ends: list[SequenceEnd] = []
        self._records = start.records
        """How many were taken."""
        self._is_stale = False
        """Whether ends may be recorded that hold no more."""
        self._note(start)

    @property
    def ends(self) -> tuple[SequenceEnd, ...]:
        return tuple(self._ends)

    @property
    def taken(self) -> SequenceEnd:
        """Behind the last batch that was taken."""
        return self._ends[-1].after(self._records)

    def take(self, batch: OutgoingBatch, epoch: int) -> bool:
        """Count a batch, read in this leader epoch; whether its end must be recorded before it is sent."""
        offsets = batch.offsets
        before = self._records
        self._records = records = before + len(offsets)
        # Gaps only ever add to the difference.
        if offsets[-1] + 1 - records == self._shift and epoch == self._epoch and records < self._far:
            was_stale, self._is_stale = self._is_stale, False
            return was_stale
        self._is_stale = False
        if batch.is_contiguous:
            self._note(SequenceEnd(before, offsets[0], epoch))
        else:
            self._note_pieces(before, offsets, epoch)
        return True

    def go_to(self, records: int, offset: int, epoch: int) -> None:
        """What was taken behind so many records is dropped; the next one is at this offset."""
        known = self.ends
        while self._ends and self._ends[-1].records >= records:
            self._ends.pop()
        self._records, reached = records, SequenceEnd(records, offset, epoch)
        follows = self._ends and self._ends[-1].after(records) == reached
        self._note(self._ends.pop() if follows else reached)
        self._is_stale = self._is_stale or known != self.ends

    def acknowledged(self, records: int) -> None:
        """So many records are acknowledged: ends before the one that counts for them are not needed."""
        at = bisect_right(self._ends, records, key=_RECORDS)
        del self._ends[: at - 1]

    def _note_pieces(self, records: int, offsets: Sequence[int], epoch: int) -> None:
        """Each run of consecutive offsets has an end: the writer may split the batch."""
        found = np.array(offsets, np.int64)
        starts = np.flatnonzero(np.diff(found, prepend=found[0] - 2) != 1)
        first, *others = zip((starts + records).tolist(), found[starts].tolist(), repeat(epoch), strict=False)
        self._note(SequenceEnd(*first))
        if others:
            self._ends += map(SequenceEnd._make, others)
            self._note(self._ends[-1])

    def _note(self, end: SequenceEnd) -> None:
        if self._ends and self._ends[-1].records == end.records:
            self._ends.pop()
        self._ends.append(end)
        self._shift, self._epoch = end.offset - end.records, end.epoch
        self._far = end.records + _FAR // 2


def encode_ends(ends: Sequence[SequenceEnd]) -> list[list[int]]:
    """A column of records, one of offsets, one of epochs: each number as its difference to the one before."""
    return [np.diff(np.array(column, np.int64), prepend=0).tolist() for column in zip(*ends, strict=True)]


def decode_ends(encoded: Sequence[Sequence[int]]) -> tuple[SequenceEnd, ...]:
    columns = [np.cumsum(np.array(column, np.int64)).tolist() for column in encoded]
    return tuple(map(SequenceEnd._make, zip(*columns, strict=True)))
