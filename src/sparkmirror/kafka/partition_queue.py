"""One target partition as the writer sees it: what waits, what is in flight, and its sequence numbers.

Sends nothing; `batch_writer` does.
"""

import itertools
from collections import deque
from typing import NamedTuple

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch, stamp
from sparkmirror.batches.records import halve
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire import NO_TOPIC_ID

_IN_FLIGHT_PER_PARTITION = 5
"""A broker remembers the last five batches of a producer on a partition, and refuses what is older."""


class PendingBatch:
    """A batch on its way; it's stamped when it's sent for the first time.

    `is_doubtful` says that it was sent once and may be in the log, whatever was answered to it since.
    """

    __slots__ = ("batch", "completes", "is_doubtful", "sequence", "stamped")

    def __init__(self, batch: OutgoingBatch, sequence: int, *, completes: bool) -> None:
        self.batch = batch
        self.sequence = sequence
        self.completes = completes
        self.stamped = self.is_doubtful = False

    def stamped_by(self, producer: ProducerId, *, transactional: bool = False) -> memoryview:
        if not self.stamped:
            sequence = self.sequence if producer != NOT_IDEMPOTENT else -1
            stamp(self.batch.data, producer.id, producer.epoch, sequence, transactional=transactional)
            self.stamped = True
        return self.batch.data


class Route(NamedTuple):
    """A connection to a broker: the one for most partitions, or that for slow ones."""

    node_id: int
    is_slow: bool


class PartitionQueue:
    """One partition: what waits, what is in flight, and what went wrong first."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.route: Route | None = None
        """Where the batches go, None while nobody leads."""
        self.is_slow = False
        """Whether it waits for its followers longer than others should wait for it."""
        self.quick_answers = 0
        self.ready: deque[PendingBatch] = deque()
        self.in_flight: deque[PendingBatch] = deque()
        self.unsettled: list[PendingBatch] = []
        self.failure: SparkmirrorError | None = None
        self.failures = 0
        self.resting = False
        self.producer: ProducerId | None = None
        self.topic_id = NO_TOPIC_ID
        """Of the topic that the batches are for; NO_TOPIC_ID for whichever has the name."""
        self.begun_at = 0.0
        """When that was known."""
        self.next_sequence = 0
        self.next_offset = 0
        """Where the log ended after the last acknowledged batch."""
        self.is_unclear = False
        """Whether what failed may have been written all the same."""
        self.proven = False
        """Whether a batch was acknowledged under this id. Until then the broker holds no state for it: were
        the first batch refused and the second accepted, a hole would look like success. So one at a time."""

    @property
    def in_flight_max(self) -> int:
        idempotent = self.producer != NOT_IDEMPOTENT
        return _IN_FLIGHT_PER_PARTITION if self.proven and idempotent else 1

    @property
    def can_send(self) -> bool:
        return (
            bool(self.ready)
            and self.failure is None
            and not self.resting
            and self.producer is not None
            and len(self.in_flight) < self.in_flight_max
        )

    def append(self, batch: OutgoingBatch) -> None:
        self.ready.append(PendingBatch(batch, self.next_sequence, completes=True))
        self.next_sequence = (self.next_sequence + len(batch.offsets)) % SEQUENCE_MODULUS

    def split_first(self) -> bool:
        """Replace the first batch by two halves; False when it's a single record."""
        first = self.ready[0]
        halves = halve(first.batch)
        if not halves:
            return False
        self.ready.popleft()
        sequence = first.sequence
        parts = []
        for number, half in enumerate(halves, start=1):
            completes = first.completes and number == len(halves)
            parts.append(PendingBatch(half, sequence, completes=completes))
            parts[-1].is_doubtful = first.is_doubtful
            sequence = (sequence + len(half.offsets)) % SEQUENCE_MODULUS
        self.ready.extendleft(reversed(parts))
        return True

    def begin(self, state: ProducerState, topic_id: bytes, now: float) -> None:
        """Number what comes from there on. Nothing may wait."""
        assert not any((self.ready, self.in_flight, self.unsettled))
        self.topic_id = topic_id
        self.begun_at = now
        self.producer = state.producer
        self.next_sequence = state.next_sequence
        self.next_offset = state.next_offset
        self.proven = False

    def renumber(self, producer: ProducerId) -> None:
        """Number what waits, and what comes, from 0 on under another epoch. None of it may be in the log."""
        assert not self.in_flight
        assert not self.unsettled
        self.producer = producer
        self.next_sequence = 0
        self.proven = False
        for pending in self.ready:
            pending.sequence = self.next_sequence
            pending.stamped = False
            self.next_sequence = (self.next_sequence + len(pending.batch.offsets)) % SEQUENCE_MODULUS

    @property
    def is_doubtful(self) -> bool:
        """Whether something that is not acknowledged may be in the log."""
        return any(
            pending.is_doubtful for pending in itertools.chain(self.in_flight, self.unsettled, self.ready)
        )

    def discard(self) -> None:
        self.next_sequence = self.ready[0].sequence if self.ready else self.next_sequence
        self.ready.clear()
