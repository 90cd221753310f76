"""Defines how the batches of a partition get to its writer; each start of a partition chooses a strategy."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.partition_events import Event
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_writer import BatchWriter

NoteSync = Callable[[TopicPartition, OutgoingBatch, int], None]
"""Notes that a source partition's batch is on the target, from this base offset on."""


class Delivery(Protocol):
    """Has the writer that batches go to now: in transactions each initialisation makes another."""

    @property
    def writer(self) -> BatchWriter: ...


class WriteStrategy:
    """Hands the batches of one partition to its writer, in their order. This one has nothing to write."""

    @property
    def has_held(self) -> bool:
        """Whether batches are held back, which the writer does not know yet."""
        return False

    def started(self) -> None:
        """Note that the partition has started where its copy says."""

    def append(self, batch: OutgoingBatch) -> None:
        """Hand the batch to the writer, now or when it is its turn."""
        raise AssertionError(f"offset {batch.offsets[0]} is written before the partition has started")

    def taken(self) -> Event | None:
        """Note that a response was taken as far as possible. Return what keeps it from continuing."""
        return None

    def acknowledged(self, batch: OutgoingBatch, base_offset: int) -> Event | None:  # noqa: ARG002
        """Note that the target has the batch from this offset on. Return what follows from it."""
        return None

    def drop_held(self) -> int:
        """Forget the batches that are held back. Return how many."""
        return 0

    def went_back(self) -> None:
        """Note that the next batch begins at the partition's `fetch_position`; forget what is held back."""


@dataclass(frozen=True, slots=True)
class PlainWrites(WriteStrategy):
    """Hands each batch to the writer at once: in transactions, and where attempts are not recorded."""

    source: TopicPartition
    target: TopicPartition
    delivery: Delivery
    note_sync: NoteSync

    def append(self, batch: OutgoingBatch) -> None:
        self.delivery.writer.append(self.target, batch)

    def acknowledged(self, batch: OutgoingBatch, base_offset: int) -> None:
        self.note_sync(self.source, batch, base_offset)


class HeldBatches:
    """The batches of a partition that its writer must not get yet."""

    __slots__ = ("_batches", "drops")

    def __init__(self) -> None:
        self._batches: deque[OutgoingBatch] = deque()
        self.drops = 0
        """The number of drops: what was under way for dropped batches releases nothing."""

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def first_offset(self) -> int:
        """The upstream offset of the first one. There must be one."""
        return self._batches[0].offsets[0]

    def append(self, batch: OutgoingBatch) -> None:
        self._batches.append(batch)

    def release(self) -> OutgoingBatch:
        """Take the first one, for the writer."""
        return self._batches.popleft()

    def drop(self) -> int:
        """Forget them. Return how many."""
        count = len(self._batches)
        self._batches.clear()
        self.drops += 1
        return count
