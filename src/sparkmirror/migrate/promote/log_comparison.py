"""Compares the ends of two logs that have the same offsets up to a parting.

One log is to follow the other from its own end on. Finds the records that only the follower has, and the
records of the leader that it lacks below its end.

Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from sparkmirror.batches.agreement.equality import by_offset, same_record
from sparkmirror.batches.record_body import read_key
from sparkmirror.batches.records import RawRecord

_KEYS_MAX: Final = 3
COMPARED_BEFORE: Final = 100
"""The number of offsets before the parting, or the shorter log's end, that are compared too."""


class Kind(Enum):
    """The kinds of records that keep the follower from following."""

    ALONE = "alone"
    """A record that only the follower has."""
    OTHER = "other"
    """A record of the follower; the leading log has another one at its offset."""
    PASSED = "passed"
    """A record that only the leading log has, at an offset before the follower's end."""


class Difference(NamedTuple):
    kind: Kind
    record: RawRecord
    """The follower's, unless it is PASSED."""


class Parted(NamedTuple):
    """The offset where the logs part, and the follower's end."""

    offset: int
    end: int


@dataclass(slots=True)
class Differences:
    """Counts a partition's differences, with their first and last offset and the first keys."""

    counts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    first: int | None = None
    last: int | None = None
    keys: list[bytes | None] = field(default_factory=list)

    @classmethod
    def of(cls, found: Iterable[Difference]) -> "Differences":
        made = cls()
        for kind, record in found:
            made.counts[kind] += 1
            made.first = record.offset if made.first is None else made.first
            made.last = record.offset
            if kind is not Kind.PASSED and len(made.keys) < _KEYS_MAX:
                made.keys.append(read_key(record.body))
        return made

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def own(self) -> int:
        """The number of the follower's records that are lost with its log."""
        return self.counts[Kind.ALONE] + self.counts[Kind.OTHER]


def first_compared(parted: Parted) -> int:
    return max(0, min(parted) - COMPARED_BEFORE)


def differences(
    follower: Iterable[RawRecord], leading: Iterable[RawRecord], parted: Parted, *, compares_times: bool
) -> Iterator[Difference]:
    """Yield differences in the order of offsets, from `first_compared` to the follower's end.

    Before the parting a record may be missing on either side: retention and compaction remove them.
    """
    for mine, its in by_offset(follower, leading):
        if mine is not None and its is not None:
            if not same_record(mine, its, timestamps=compares_times):
                yield Difference(Kind.OTHER, mine)
        elif mine is not None and mine.offset >= parted.offset:
            yield Difference(Kind.ALONE, mine)
        elif its is not None and parted.offset <= its.offset < parted.end:
            yield Difference(Kind.PASSED, its)
