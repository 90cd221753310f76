"""Notes sequence ends of the current producer epoch, and decides which batches need an end recorded first.

`take` is called for each batch, so it only compares numbers and keeps what it was given. Ends are looked for
and encoded, once, when they must be recorded.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.offsets.sequence_ends import (
    FAR,
    Column,
    EncodedEnds,
    SequenceEnd,
    columns_of,
    decode_ends,
    join_ends,
)

_FIRST_RECORDS: Final = attrgetter("first.records")
_MANY: Final = 64
"""The count of batches from which arrays are faster."""


class _Taken(NamedTuple):
    """A batch behind so many records, read in this leader epoch.

    `offsets` are those of its records, only the first of them where they follow each other.
    """

    records: int
    offsets: Sequence[int]
    epoch: int


class EndsAhead:
    """The sequence ends from the last acknowledged record on."""

    __slots__ = ("_encoded", "_epoch", "_far", "_is_stale", "_records", "_shift", "_taken")

    def __init__(self, start: SequenceEnd) -> None:
        self._encoded: list[EncodedEnds] = []
        self._taken: list[_Taken] = []
        """The batches after those ends."""
        self._records = start.records
        """The count of records that were taken."""
        self._is_stale = False
        """Whether ends may be recorded that hold no more."""
        self._shift = self._epoch = self._far = 0
        """A batch that continues these needs no end: see `take`."""
        self._begin(start)

    @property
    def taken(self) -> SequenceEnd:
        """The end of the last batch that was taken."""
        return SequenceEnd(self._records, self._records + self._shift, self._epoch)

    def take(self, batch: OutgoingBatch, epoch: int) -> bool:
        """Count a batch, read in this leader epoch; whether its end must be recorded before it is sent."""
        offsets = batch.offsets
        before = self._records
        self._records = records = before + len(offsets)
        # Gaps only ever add to the difference.
        shift = offsets[-1] + 1 - records
        if shift == self._shift and epoch == self._epoch and records < self._far:
            was_stale, self._is_stale = self._is_stale, False
            return was_stale
        self._is_stale = False
        self._taken.append(_Taken(before, offsets[:1] if batch.is_contiguous else offsets, epoch))
        self._shift, self._epoch, self._far = shift, epoch, before + FAR // 2
        return True

    def go_to(self, records: int, offset: int, epoch: int) -> None:
        """Drop what was taken after so many records; the next record has this offset."""
        known = self.ends
        kept = [end for end in known if end.records < records]
        self._encoded = [EncodedEnds.of(columns_of(kept))] if kept else []
        self._records, reached = records, SequenceEnd(records, offset, epoch)
        if kept and kept[-1].after(records) == reached:
            self._follow(kept[-1])
        else:
            self._begin(reached)
        self._is_stale = self._is_stale or known != self.ends

    def acknowledged(self, records: int) -> None:
        """Drop most ends before the one that counts for so many acknowledged records."""
        at = bisect_right(self._encoded, records, key=_FIRST_RECORDS)
        del self._encoded[: at - 1]

    @property
    def ends(self) -> tuple[SequenceEnd, ...]:
        return decode_ends(json.loads(self.encode()))

    def encode(self) -> str:
        """Encode all ends, as `encode_ends` does."""
        if self._taken:
            encoded = _encoded(self._taken)
            self._taken.clear()
            if self._encoded[-1].last.records == encoded.first.records:
                self._encoded.pop()  # nothing was taken behind it
            self._encoded.append(encoded)
        return join_ends(self._encoded)

    def _begin(self, end: SequenceEnd) -> None:
        self._encoded.append(EncodedEnds.of_one(end))
        self._follow(end)

    def _follow(self, end: SequenceEnd) -> None:
        self._shift, self._epoch, self._far = end.offset - end.records, end.epoch, end.records + FAR // 2


def _encoded(taken: Sequence[_Taken]) -> EncodedEnds:
    if len(taken) < _MANY and all(len(batch.offsets) == 1 for batch in taken):
        return EncodedEnds.of_few(
            [SequenceEnd(batch.records, batch.offsets[0], batch.epoch) for batch in taken]
        )
    return EncodedEnds.of(_ends_of(taken))


def _ends_of(taken: Sequence[_Taken]) -> Sequence[Column]:
    """Yield an end for each run of consecutive offsets in a batch: the writer may split the batch."""
    counts = [len(batch.offsets) for batch in taken]
    offsets = np.fromiter(chain.from_iterable(batch.offsets for batch in taken), np.int64, sum(counts))
    begins = np.cumsum([0, *counts[:-1]])
    is_end = np.diff(offsets, prepend=offsets[:1]) != 1
    is_end[begins] = True
    before = np.array([batch.records for batch in taken], np.int64) - begins
    records = np.arange(len(offsets), dtype=np.int64) + np.repeat(before, counts)
    epochs = np.repeat(np.array([batch.epoch for batch in taken], np.int64), counts)
    return records[is_end], offsets[is_end], epochs[is_end]
