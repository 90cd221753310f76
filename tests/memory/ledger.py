"""Keeps which records a source partition was given, and which of them must reach the target.

A record's number is its place in the order of writing; its value names it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

from sparkmirror.batches.log_records import Headers, LogRecord

_PARTS: Final = "key", "value", "headers", "timestamp_ms"


class Due(Enum):
    """Whether a record must arrive. The values complete "record 5 is …"."""

    MUST = "due"
    MAY = "optional"
    """The source may lose it before it is copied."""
    UNDECIDED = "in a transaction that is open"
    NEVER = "not to be copied"
    """The record is aborted, or must be skipped."""


class Ledger:
    """One source partition. `records`, `offsets` and `dues` are by number."""

    def __init__(self, due_of: Callable[[int, Due], Due] = lambda _, due: due) -> None:
        """`due_of` says what transforms make of a record that would be due otherwise."""
        self._due_of = due_of
        self.records: list[LogRecord] = []
        """The records as the source has stored them."""
        self.offsets: list[int] = []
        self.dues: list[Due] = []
        self.bad: set[int] = set()
        """The numbers that can't be copied: never if they are skipped, else until the fault is removed."""
        self.aborted: set[int] = set()
        self.removed: set[int] = set()
        """The numbers that the log cleaner has removed from the source."""

    @property
    def count(self) -> int:
        return len(self.offsets)

    def offset_of(self, number: int) -> int:
        """-1 for a record that was not written."""
        return self.offsets[number] if 0 <= number < self.count else -1

    def add(self, records: Sequence[LogRecord], due: Due) -> range:
        """The numbers of these records."""
        first = self.count
        self.records += records
        self.offsets += [record.offset for record in records]
        self.dues += [self._due_of(number, due) for number in range(first, self.count)]
        return range(first, self.count)

    def change(self, numbers: Iterable[int], due: Due) -> None:
        for number in numbers:
            self.dues[number] = self._due_of(number, due)

    def due(self, before_offset: int | None = None) -> Iterator[int]:
        """The numbers that must arrive, all of them or those before an offset."""
        for number, due in enumerate(self.dues):
            if due is Due.MUST and (before_offset is None or self.offsets[number] < before_offset):
                yield number

    def misplaced(self, number: int, before: int) -> str:
        """Why this record must not follow that one in the target, empty if it may."""
        if not 0 <= number < self.count:
            return "a record that does not belong to the flow arrives"
        if number <= before:
            return f"record {number} arrives after record {before}"
        if self.dues[number] in (Due.NEVER, Due.UNDECIDED):
            return f"record {number} arrives, though it is {self.dues[number].value}"
        for missing in range(before + 1, number):
            if self.dues[missing] in (Due.MUST, Due.UNDECIDED):
                return f"record {number} arrives before record {missing}, which is {self.dues[missing].value}"
        return ""

    def altered(self, number: int, arrived: LogRecord, added: Headers = ()) -> str:
        """Why this record is not as at the source, empty if it is. `added` are headers of the mirror."""
        written = self.records[number]
        expected = written._replace(headers=(*written.headers, *added))
        parts = [part for part in _PARTS if getattr(arrived, part) != getattr(expected, part)]
        return f"record {number} arrives with another {' and '.join(parts)}" if parts else ""

    def not_ready(self, offset: int, arrived: Collection[int]) -> str:
        """Why a position must not be behind this source offset, empty if it may."""
        for number, due in enumerate(self.dues):
            if self.offsets[number] > offset:
                continue
            if due is Due.UNDECIDED or (due is Due.MUST and number not in arrived):
                return f"record {number} is {due.value}"
        return ""

    def without_letter(self, letters: Collection[tuple[int, int]]) -> str:
        """The first record that was skipped and that no dead letter (first and last offset) names."""
        named = self._named_by(letters)
        missing = sorted(self.bad - self.aborted - named)
        return f"record {missing[0]} has no dead letter" if missing else ""

    def wrongly_named(self, letters: Collection[tuple[int, int]]) -> str:
        """The first record that a dead letter names though it can be copied."""
        wrong = sorted(self._named_by(letters) - self.bad - self.removed)
        return f"a dead letter names record {wrong[0]}" if wrong else ""

    def _named_by(self, letters: Collection[tuple[int, int]]) -> set[int]:
        return {
            number
            for number, offset in enumerate(self.offsets)
            if any(first <= offset <= last for first, last in letters)
        }
