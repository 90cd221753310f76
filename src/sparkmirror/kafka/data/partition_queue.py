"""Holds what waits and what is in flight for one target partition, with its sequence numbers.

Sends nothing; `batch_writer` does. `PHASES` is the table of what a queue may do next. Fields change only by
the queue's own methods.

Pure.
"""

import itertools
from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch, rewrite_header
from sparkmirror.batches.records import halve
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.net.metadata import Leader
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID

_IN_FLIGHT_PER_PARTITION = 5
"""A broker remembers the last five batches of a producer on a partition, and refuses what is older."""

_QUICK_RESPONSE_S = 1.0
_QUICK_RESPONSES = 3
"""The number in a row after which a slow partition shares the connection with the others again."""


class PendingBatch:
    """A batch on its way; it is stamped when it is sent for the first time.

    `is_doubtful` says that it was sent once and may be in the log, whatever the responses were since.
    `is_part` says that it is a part of a batch that was split.
    """

    __slots__ = ("batch", "completes", "is_doubtful", "is_part", "sequence", "stamped")

    def __init__(self, batch: OutgoingBatch, sequence: int, *, completes: bool) -> None:
        self.batch = batch
        self.sequence = sequence
        self.completes = completes
        self.stamped = self.is_doubtful = self.is_part = False

    @property
    def next_sequence(self) -> int:
        return (self.sequence + len(self.batch.offsets)) % SEQUENCE_MODULUS

    def stamped_by(self, producer: ProducerId, *, transactional: bool = False) -> memoryview:
        if not self.stamped:
            sequence = self.sequence if producer != NOT_IDEMPOTENT else -1
            rewrite_header(
                self.batch.data, producer.id, producer.epoch, sequence, transactional=transactional
            )
            self.stamped = True
        return self.batch.data


class Route(NamedTuple):
    """A connection to a broker: the one for most partitions, or the one for slow partitions."""

    node_id: int
    is_slow: bool


class QueuePhase(Enum):
    """The phase of a queue: only SENDING sends."""

    CLOSED = "closed"
    """The queue has no sequence yet, or lost it."""
    SENDING = "sending"
    DRAINING = "draining"
    """A batch failed: the responses to all that are in flight come first."""
    CHECKING_LOG = "checking log"
    """The log is read to find which of them were written."""
    BACKING_OFF = "backing off"
    """Batches are sent again when a timer expires."""


class QueueEvent(Enum):
    NUMBERED = "numbered"
    FAILED = "failed"
    UNCLEAR = "outcome unclear"
    RETRY = "retry"
    BACK_OFF = "retry later"
    GIVE_UP = "given up"


_P, _E = QueuePhase, QueueEvent
PHASES: Final[Mapping[QueuePhase, Mapping[QueueEvent, QueuePhase]]] = {
    _P.CLOSED: {_E.NUMBERED: _P.SENDING},
    _P.SENDING: {
        _E.NUMBERED: _P.SENDING,
        _E.FAILED: _P.DRAINING,
        _E.RETRY: _P.SENDING,
        _E.BACK_OFF: _P.BACKING_OFF,
        _E.GIVE_UP: _P.CLOSED,
    },
    _P.DRAINING: {
        _E.FAILED: _P.DRAINING,
        _E.UNCLEAR: _P.CHECKING_LOG,
        _E.RETRY: _P.SENDING,
        _E.BACK_OFF: _P.BACKING_OFF,
        _E.GIVE_UP: _P.CLOSED,
    },
    _P.CHECKING_LOG: {
        _E.RETRY: _P.SENDING,
        _E.BACK_OFF: _P.BACKING_OFF,
        _E.GIVE_UP: _P.CLOSED,
    },
    _P.BACKING_OFF: {_E.NUMBERED: _P.SENDING, _E.RETRY: _P.SENDING, _E.GIVE_UP: _P.CLOSED},
}
"""Any other pair is a bug."""


def step_queue(phase: QueuePhase, event: QueueEvent) -> QueuePhase:
    """The next phase. Raises RuntimeError for what can't happen."""
    following = PHASES[phase].get(event)
    if following is None:
        raise RuntimeError(f"{event.value} while {phase.value}")
    return following


class PartitionQueue:
    """The batches of one partition, in order: in flight first, then unsettled, then ready to be sent."""

    def __init__(
        self, partition: TopicPartition, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    ) -> None:
        self.partition = partition
        self._decompressed_bytes_max = decompressed_bytes_max
        self.phase = QueuePhase.CLOSED
        self.route: Route | None = None
        """The connection for the batches, None while the partition has no leader."""
        self.is_slow = False
        """Whether it waits for its followers longer than others should wait for it."""
        self.ready: deque[PendingBatch] = deque()
        self.in_flight: deque[PendingBatch] = deque()
        self.failures = 0
        self.producer: ProducerId | None = None
        self.topic_id = NO_TOPIC_ID
        """The id of the topic that the batches are for; NO_TOPIC_ID for any topic of that name."""
        self.numbered_at = 0.0
        """The loop's time when that id was known."""
        self.next_sequence = 0
        self.next_offset = 0
        """The end of the log after the last acknowledged batch."""
        self._leader_epoch: int | None = None
        self.proven = False
        """Whether a batch was acknowledged under this id since its start, and since a batch was refused.

        Where the broker holds no state for the id, it accepts any sequence: were the first batch refused and
        the second accepted, a hole would look like success. So one at a time until then. A broker forgets an
        id by the timestamps of its records, which may be old: perhaps while a refused batch is retried.
        """
        self._quick_responses = 0
        self._unsettled: list[PendingBatch] = []
        self._failure: SparkmirrorError | None = None
        """The first one of those in flight."""
        self._is_unclear = False
        """Whether any of them may have been written all the same."""

    def has_new_leader(self, leader: Leader | None) -> bool:
        """Whether it has another leader than when this was asked before, or the same by another election."""
        if leader is None or leader.epoch == self._leader_epoch:
            return False
        is_first, self._leader_epoch = self._leader_epoch is None, leader.epoch
        return not is_first

    @property
    def in_flight_max(self) -> int:
        idempotent = self.producer != NOT_IDEMPOTENT
        return _IN_FLIGHT_PER_PARTITION if self.proven and idempotent else 1

    @property
    def can_send(self) -> bool:
        return (
            self.phase is QueuePhase.SENDING and bool(self.ready) and len(self.in_flight) < self.in_flight_max
        )

    @property
    def can_move(self) -> bool:
        """Whether the next batch may go to another broker."""
        return not self.in_flight

    def happened(self, event: QueueEvent) -> None:
        self.phase = step_queue(self.phase, event)

    def move(self, route: Route | None, topic_id: bytes = NO_TOPIC_ID) -> None:
        """Go to that connection, to a topic with that id if it has one; None without a leader."""
        self.route = route
        self.topic_id = topic_id or self.topic_id

    # numbers

    def number(self, state: ProducerState, topic_id: bytes, now: float) -> None:
        """Number what comes from there on. Nothing may wait."""
        assert not any((self.ready, self.in_flight, self._unsettled))
        self.happened(QueueEvent.NUMBERED)
        self.topic_id = topic_id
        self.numbered_at = now
        self.producer = state.producer
        self.next_sequence = state.next_sequence
        self.next_offset = state.next_offset
        self.proven = False

    def renumber(self, producer: ProducerId) -> None:
        """Number what waits, and what comes, from 0 on under another epoch. None of it may be in the log."""
        assert not self.in_flight
        assert not self._unsettled
        self.producer = producer
        self.next_sequence = 0
        self.proven = False
        for pending in self.ready:
            pending.sequence = self.next_sequence
            pending.stamped = False
            self.next_sequence = pending.next_sequence

    def give_up(self) -> None:
        """Drop all that is ready; nothing is sent until `number`."""
        self.happened(QueueEvent.GIVE_UP)
        self.discard()
        self.producer = None

    # batches

    def append(self, batch: OutgoingBatch) -> None:
        self.ready.append(PendingBatch(batch, self.next_sequence, completes=True))
        self.next_sequence = (self.next_sequence + len(batch.offsets)) % SEQUENCE_MODULUS

    def take(self) -> PendingBatch:
        """The first batch, which is in flight from now on."""
        pending = self.ready.popleft()
        self.in_flight.append(pending)
        return pending

    def refuse_first(self) -> OutgoingBatch:
        """Drop the first batch, and all behind it. Returns it."""
        refused = self.ready[0].batch
        self.happened(QueueEvent.RETRY)
        self.discard()
        return refused

    def split_first(self) -> bool:
        """Replace the first batch by two halves; False when it is a single record.

        Raises CorruptBatchError when it can't be opened.
        """
        first = self.ready[0]
        halves = halve(first.batch, self._decompressed_bytes_max)
        if not halves:
            return False
        self.ready.popleft()
        sequence = first.sequence
        parts = []
        for number, half in enumerate(halves, start=1):
            completes = first.completes and number == len(halves)
            parts.append(PendingBatch(half, sequence, completes=completes))
            parts[-1].is_doubtful, parts[-1].is_part = first.is_doubtful, True
            sequence = parts[-1].next_sequence
        self.ready.extendleft(reversed(parts))
        return True

    def discard(self) -> None:
        """Drop all that is ready, because its first batch was refused or nothing can be sent."""
        self.proven = False
        self.next_sequence = self.ready[0].sequence if self.ready else self.next_sequence
        self.ready.clear()

    @property
    def has_unsent(self) -> bool:
        return bool(self.ready) and _is_unsent(self.ready[-1])

    def drop_unsent(self) -> int:
        """Drop the last batches, as far as none of them can be in the log. How many."""
        dropped = 0
        while self.has_unsent:
            self.next_sequence = self.ready.pop().sequence
            dropped += 1
        return dropped

    @property
    def is_doubtful(self) -> bool:
        """Whether something that is not acknowledged may be in the log."""
        return any(
            pending.is_doubtful for pending in itertools.chain(self.in_flight, self._unsettled, self.ready)
        )

    # responses

    def acknowledge_first(self, base_offset: int) -> PendingBatch:
        """The first batch in flight was written. Returns it."""
        self.proven = True
        self.failures = 0
        return self._written(self.in_flight.popleft(), base_offset)

    def acknowledge_found(self, base_offset: int) -> PendingBatch:
        """The first batch that is ready turned out to be in the log. Returns it."""
        return self._written(self.ready.popleft(), base_offset)

    def _written(self, pending: PendingBatch, base_offset: int) -> PendingBatch:
        self.next_offset = base_offset + len(pending.batch.offsets)
        return pending

    def fail_first(self, error: SparkmirrorError, *, is_unclear: bool) -> SparkmirrorError | None:
        """The first batch in flight failed. When that was the last of them: the error of the first.

        Batches behind a failed one are sent again in order, whatever became of them.
        """
        self.happened(QueueEvent.FAILED)
        pending = self.in_flight.popleft()
        self._unsettled.append(pending)
        self._failure = self._failure or error
        if is_unclear:
            pending.is_doubtful = self._is_unclear = True
        if self.in_flight:
            return None
        self.ready.extendleft(reversed(self._unsettled))
        self._unsettled.clear()
        failure, self._failure = self._failure, None
        return failure

    def back_off(self) -> None:
        """Wait for a retry, longer after each failure since the last acknowledgement."""
        self.failures += 1
        self.happened(QueueEvent.BACK_OFF)

    def needs_check(self) -> bool:
        """Whether the log must be read before anything is sent again. Asked once after each failure."""
        is_unclear, self._is_unclear = self._is_unclear, False
        return is_unclear and self.producer != NOT_IDEMPOTENT

    def timed_out(self) -> None:
        self.is_slow, self._quick_responses = True, 0

    def responded(self, took_s: float) -> bool:
        """Whether a slow partition has become quick, and changes its connection."""
        self._quick_responses = self._quick_responses + 1 if took_s < _QUICK_RESPONSE_S else 0
        self.is_slow = self._quick_responses < _QUICK_RESPONSES or bool(self.in_flight)
        return not self.is_slow


def _is_unsent(pending: PendingBatch) -> bool:
    """Whether it can't be in the log, nor a part of it."""
    return not pending.is_doubtful and not pending.is_part
