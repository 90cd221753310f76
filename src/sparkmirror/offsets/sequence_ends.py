"""Says which offset of the source follows the n-th record of a producer epoch.

Where records follow each other in the source it is counted: behind n more of them the offset is n more. A
`SequenceEnd` is noted where that does not hold: behind gaps of compaction and control batches, after a jump,
and in each leader epoch of the source.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS
from sparkmirror.domain.errors import SparkmirrorError

FAR: Final = SEQUENCE_MODULUS // 2
"""An end is noted at least so often, so that sequences, which start again at 0, can't be mistaken."""

_RECORDS: Final = attrgetter("records")

Column = npt.NDArray[np.int64]

_TEXTS: Final = np.array([f",{number}".encode() for number in range(1000)])
"""Texts of small numbers: a compacted partition has hundreds of thousands of differences in a second."""


class SequenceEnd(NamedTuple):
    """The source's next `offset` after so many records of a producer epoch.

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


def last_records(ends: Sequence[SequenceEnd], count: int) -> range:
    """The source's offsets of the last of so many records, as far back as they follow each other.

    `ends` are those of one epoch in their order, at least one. Raises NoSuchEndError.
    """
    at = bisect_left(ends, count, key=_RECORDS)
    if at == 0:
        raise NoSuchEndError(f"the end before record {count} is not known")
    before = ends[at - 1]
    return range(before.offset, before.after(count).offset)


def _nearest(sequence: int, count: int) -> int:
    """The count nearest to this one at which the next record has the sequence."""
    ahead = (sequence - count) % SEQUENCE_MODULUS
    return count + (ahead if ahead < FAR else ahead - SEQUENCE_MODULUS)


class EncodedEnds(NamedTuple):
    """Ends in their order, at least one: `differences` are the JSON of those between them, by column.

    What is encoded once can be joined to others again and again.
    """

    first: SequenceEnd
    last: SequenceEnd
    differences: tuple[str, str, str]

    @classmethod
    def of_one(cls, end: SequenceEnd) -> "EncodedEnds":
        return cls(end, end, ("", "", ""))

    @classmethod
    def of_few(cls, ends: Sequence[SequenceEnd]) -> "EncodedEnds":
        """The same as `of`, and faster for less than a hundred."""
        records, offsets, epochs = (
            "".join([f",{after - before}" for before, after in pairwise(column)])
            for column in zip(*ends, strict=True)
        )
        return cls(ends[0], ends[-1], (records, offsets, epochs))

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "EncodedEnds":
        """`columns` are records, offsets and epochs."""
        first, last = (SequenceEnd._make(int(column[at]) for column in columns) for at in (0, -1))
        records, offsets, epochs = (_differences(column) for column in columns)
        return cls(first, last, (records, offsets, epochs))


def columns_of(ends: Sequence[SequenceEnd]) -> Sequence[Column]:
    return [np.array(column, np.int64) for column in zip(*ends, strict=True)]


def _differences(column: Column) -> str:
    """Write each difference with a comma before it."""
    differences = np.diff(column)
    if differences.min(initial=0) >= 0 and differences.max(initial=0) < len(_TEXTS):
        return _TEXTS[differences].tobytes().translate(None, b"\0").decode()
    return "".join(f",{difference}" for difference in differences.tolist())


def encode_ends(ends: Sequence[SequenceEnd]) -> str:
    """JSON: columns of records, offsets and epochs, each number as its difference to the one before."""
    return join_ends([EncodedEnds.of_one(end) for end in ends])


def join_ends(encoded: Sequence[EncodedEnds]) -> str:
    """The same of several that follow each other."""
    columns = ["", "", ""]
    before = SequenceEnd(0, 0, 0)
    for each in encoded:
        for at, differences in enumerate(each.differences):
            columns[at] += f",{each.first[at] - before[at]}{differences}"
        before = each.last
    return f"[{','.join(f'[{column[1:]}]' for column in columns)}]"


def decode_ends(encoded: Sequence[Sequence[int]]) -> tuple[SequenceEnd, ...]:
    """Decode the parsed JSON of `encode_ends`."""
    return tuple(
        map(SequenceEnd._make, zip(*(accumulate(map(int, column)) for column in encoded), strict=True))
    )
