"""What happens to topics under a mirror's hands, and what a user wants done about it.

Options that Java MM2 does not have: it goes on without a word, or stops without one.
"""

from enum import Enum
from typing import NamedTuple


class OnDataLoss(Enum):
    """`on.data.loss`: records are gone from the source before they were copied."""

    RECORD = "record"
    """Say it, count it, go on with what exists."""
    FAIL = "fail"
    """Stop the partition until a person decides."""


class OnTopicRecreated(Enum):
    """`on.topic.recreated`: a topic of that name has another topic id (KIP-516) than before."""

    RECORD = "record"
    """Say it, go on: with a new source topic's first record; into a new target topic with the next record."""
    FAIL = "fail"
    """Stop the partition until a person decides."""
    RESTART = "restart"
    """Begin as if nothing had been copied yet, where `auto.offset.reset` says."""


class OnBadBatch(Enum):
    """`on.bad.batch`: a batch that can't be read, or that the target will never take."""

    FAIL = "fail"
    """Stop the partition, and try again now and then: a person may have mended it."""
    SKIP = "skip"
    """Leave a dead-letter record that names it, and go on behind it."""


class Reactions(NamedTuple):
    """What a user wants done about each kind of incident."""

    on_data_loss: OnDataLoss = OnDataLoss.RECORD
    on_topic_recreated: OnTopicRecreated = OnTopicRecreated.RECORD
    on_bad_batch: OnBadBatch = OnBadBatch.FAIL


DEFAULT_REACTIONS = Reactions()


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
