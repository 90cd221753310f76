"""Records that were gone before they could be copied, and what a user wants done about it."""

from enum import Enum
from typing import NamedTuple


class OnDataLoss(Enum):
    """`on.data.loss`, an option that Java MM2 does not have: it goes on without a word."""

    RECORD = "record"
    """Say it, count it, go on with what exists."""
    FAIL = "fail"
    """Stop the partition until a person decides."""


class DataLoss(NamedTuple):
    """`position` was the next upstream offset to copy, and does not exist; `start` is the next that does."""

    position: int
    start: int

    @property
    def records(self) -> int:
        """At most, as offsets go: transactions and compaction leave gaps."""
        return max(0, self.start - self.position)

    def __str__(self) -> str:
        if self.start > self.position:
            return (
                f"offsets {self.position} to {self.start - 1} were gone from the source before they were "
                f"copied ({self.records} records); going on from {self.start}"
            )
        return (
            f"offset {self.position} is behind the source's end: it was truncated or made anew; "
            f"going on from {self.start}"
        )
