"""A partition between a source and a broker of lists: real states, counters and queue, random misfortune.

The broker keeps Kafka's rule for sequences. Each method of `moves` and `misfortunes` is something that may
happen next; `check` holds what must be true whenever nothing happens.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.copy import partition_events as events
from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Do, Event, Instruction
from sparkmirror.copy.partition_states import TABLE
from sparkmirror.copy.write_strategy import WriteStrategy
from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_queue import PartitionQueue, PendingBatch, QueueEvent, QueuePhase
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.dead_letters import DeadLetter
from sparkmirror.storage.positions import Position
from tests.support.batches import NOW_MS, Rec, encode, joined

SOURCE: Final = TopicPartition("orders", 0)
RECORDS: Final = 30
PASSING: Final = RetriableError("not now")
LASTING: Final = KafkaError("not ever")
TIMED: Final = {Phase.RETRYING, Phase.THROTTLED, Phase.BLOCKED, Phase.FENCED, Phase.FAILED}

Move = Callable[[], object]


class PartitionWorld:
    """`log` holds what the target has: producer, sequence and upstream offset of each record."""

    def __init__(self, randomness: random.Random) -> None:
        self.random = randomness
        self.now = 0.0
        self.batches = list(self._source_batches())
        self.copy = PartitionCopy(CopyPartition(SOURCE, "s.orders"), CopyRules(), read_committed=False)
        self.queue = PartitionQueue(self.copy.plan.target)
        self.log: list[tuple[ProducerId, int, int]] = []
        self.sent: dict[tuple[ProducerId, int], int] = {}
        """Which record each sequence was ever sent with."""
        self.arrived: set[int] = set()
        """Records that the log or a log before it held, or a dead letter names."""
        self.last_producer = ProducerId(1, 0)
        self.timer: float | None = None
        self.fetches = False
        self.resolving: events.Resolve | None = None
        self.reads_position = True
        self.looks_up = False
        self.responses: list[bool] = []
        """Whether each batch in flight is in the log."""
        self.simple: dict[Do, Move] = {
            Do.FETCH_NEXT: self.set("fetches", value=True),
            Do.FETCH_WHEN_FREE: self.set("fetches", value=True),
            Do.PAUSE_FETCH: self.set("fetches", value=False),
            Do.AWAIT_DRAINED: self.note_drained,
            Do.DISCARD: self.copy.discard,
            Do.FREE_BUFFER: lambda: self.copy.drop_unsent(lambda _: self.queue.drop_unsent()),
            Do.DISTRUST: self.copy.distrust,
            Do.FORGET_POSITION: self.copy.forget_position,
            Do.READ_POSITION: self.set("reads_position", value=True),
            Do.CANCEL_RESOLVE: self.set("resolving", value=None),
            Do.CANCEL_LOOK_UP: self.set("looks_up", value=False),
            Do.CANCEL_TIMER: self.cancel_timer,
        }
        self.visited: set[Phase] = {Phase.WAITING}

    def _source_batches(self) -> Iterator[tuple[int, bytearray]]:
        """Each with the offset behind it."""
        offset = 0
        while offset < RECORDS:
            count = min(self.random.randint(1, 4), RECORDS - offset)
            data = encode(map(Rec, range(count)), base_offset=offset)
            offset += count
            yield offset, data

    # states

    def report(self, event: Event) -> None:
        instructions = self.copy.step(event, self.now)
        self.visited.add(self.copy.state.phase)
        for instruction in instructions:
            self.carry_out(instruction)

    def carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Do():
                self.simple[instruction]()
            case events.SetTimer(deadline):
                assert self.timer is None
                self.timer = deadline
            case events.LookUp():
                self.looks_up = True
            case events.Resolve():
                assert self.copy.outstanding_bytes == 0
                self.resolving = instruction
            case events.StartFrom(start):
                self.copy.begin(start, WriteStrategy())
                self.queue.number(start.producer, NO_TOPIC_ID, self.now)
                self.fetches = True

    def cancel_timer(self) -> None:
        assert self.timer is not None
        self.timer = None

    def set(self, name: str, value: object) -> Move:
        return lambda: setattr(self, name, value)

    def note_drained(self) -> None:
        if not self.copy.outstanding_bytes:
            self.report(events.Drained())

    # what may happen, and leads on

    def moves(self) -> list[Move]:
        found: list[tuple[object, Move]] = [
            (self.fetches and self.copy.fetch_position < RECORDS, self.fetch),
            (self.queue.can_send, self.send),
            (self.responses, self.respond),
            (self.queue.phase is QueuePhase.CHECKING_LOG, self.check_log),
            (self.queue.phase is QueuePhase.BACKING_OFF, self.retry),
            (self.timer is not None, self.expire),
            (self.resolving, self.resolve),
            (self.reads_position, self.read_position),
            (self.looks_up, self.know_writers),
        ]
        return [move for possible, move in found if possible]

    def fetch(self) -> None:
        later = [data for end, data in self.batches if end > self.copy.fetch_position]
        found = FetchedPartition(SOURCE, 0, RECORDS, RECORDS, 0, [], -1, joined(later[:3]))
        for batch in self.copy.take(found):
            self.queue.append(batch)
        if self.copy.state.fetch_error is not None:
            self.report(events.FetchWorks())
        if self.copy.outstanding_bytes > 500:
            self.meet(events.BufferFull())

    def send(self) -> None:
        pending = self.queue.take()
        assert self.queue.producer is not None
        for number, offset in enumerate(pending.batch.offsets):
            record = self.sent.setdefault((self.queue.producer, pending.sequence + number), offset)
            assert record == offset, "two records under one sequence"
        self.responses.append(self.random.random() < 0.7 and self.append_to_log(pending))

    def append_to_log(self, pending: PendingBatch) -> bool:
        """Whether the broker takes it, or has it."""
        producer = self.queue.producer
        assert producer is not None
        written = [sequence for writer, sequence, _ in self.log if writer == producer]
        following = written[-1] + 1 if written else 0
        if pending.sequence == following:
            for number, offset in enumerate(pending.batch.offsets):
                self.log.append((producer, following + number, offset))
                self.arrived.add(offset)
            return True
        return pending.sequence < following

    def respond(self) -> None:
        """An acknowledgement if the batch is in the log, else a refusal that may pass."""
        if self.responses.pop(0) and self.queue.phase is not QueuePhase.DRAINING:
            self.queue.proven = True
            self.acknowledge(self.queue.in_flight.popleft())
        else:
            self.fail(
                is_unclear=self.queue.in_flight[0].is_doubtful or self.queue.phase is QueuePhase.DRAINING
            )

    def acknowledge(self, pending: PendingBatch) -> None:
        self.copy.acknowledged(pending.batch, 0, NOW_MS, completes=pending.completes)
        if self.copy.state.failures or self.copy.state.write_error is not None:
            self.report(events.WriteWorks())
        if self.copy.state.phase is Phase.BACKPRESSURED and self.copy.outstanding_bytes <= 250:
            self.report(events.BufferFree())
        elif self.copy.state.phase is Phase.DRAINING:
            self.note_drained()

    def fail(self, *, is_unclear: bool) -> None:
        if self.queue.fail_first(PASSING, is_unclear=is_unclear) is None:
            return
        if self.queue.needs_check():
            self.queue.happened(QueueEvent.UNCLEAR)
            self.report(events.WriteFailed(PASSING))
        else:
            self.recover()

    def recover(self) -> None:
        self.queue.happened(QueueEvent.BACK_OFF if self.queue.ready else QueueEvent.RETRY)
        self.report(events.WriteFailed(PASSING))

    def check_log(self) -> None:
        sequences = {sequence for writer, sequence, _ in self.log if writer == self.queue.producer}
        while self.queue.ready and self.queue.ready[0].sequence in sequences:
            self.acknowledge(self.queue.ready.popleft())
        self.recover()

    def retry(self) -> None:
        self.queue.happened(QueueEvent.RETRY)
        if not self.queue.ready:
            self.report(events.WritePossible())

    def expire(self) -> None:
        assert self.timer is not None
        self.now, self.timer = max(self.now, self.timer), None
        self.report(events.TimerExpired())

    def resolve(self) -> None:
        """Resume behind all that is in the log, under the next epoch."""
        assert self.resolving is not None
        reason, self.resolving = self.copy.resume_reason(self.resolving.reason), None
        known = -1 if reason.position is None else reason.position.offset
        if reason.skipped is not None:
            self.arrived.update(range(reason.skipped.first, reason.skipped.last + 1))
        position = max([known, *(offset for *_, offset in self.log)]) + 1
        self.last_producer = self.last_producer.next_epoch()
        state = ProducerState(self.last_producer, 0, len(self.log))
        self.report(events.Resolved(events.Start(position, state)))

    def read_position(self) -> None:
        self.reads_position = False
        last = max((offset for *_, offset in self.log), default=-1)
        self.report(events.PositionRead(Position(last) if last >= 0 else None))

    def know_writers(self) -> None:
        self.looks_up = False
        self.report(events.WritersKnown())

    # faults

    def misfortunes(self) -> list[Move]:
        jitter = self.random.random()
        found: list[tuple[object, Move]] = [
            (self.responses, self.lose_responses),
            (self.queue.ready and self.queue.phase is QueuePhase.SENDING and not self.responses, self.refuse),
            (self.responses and self.queue.phase is QueuePhase.SENDING, self.lose_sequence),
            (self.queue.phase is QueuePhase.SENDING and not self.responses, self.recreate_target),
            (self.queue.phase is QueuePhase.CHECKING_LOG, self.recreate_target),
            (
                self.queue.has_unsent and self.can(events.BufferNeeded),
                lambda: self.report(events.BufferNeeded(jitter)),
            ),
            (self.random.random() < 0.2, self.lose_transaction),
            (self.resolving, self.fail_to_resolve),
            (self.looks_up, lambda: self.report(events.LookUpFailed(PASSING))),
            (self.reads_position, lambda: self.report(events.PositionUnreadable(PASSING))),
        ]
        anywhere = (
            events.FetchFailed(PASSING),
            events.LimitsChanged(),
            events.TransactionFailed(LASTING),
            events.LastEntryLost(None),
        )
        found += [(True, lambda event=event: self.report(event)) for event in anywhere]  # type: ignore[misc]
        source = (
            events.OutOfRange(),
            events.Diverged(0),
            events.SourceRecreated(),
            events.LimitReached(1.0),
            events.WritersUnknown({5}),
            events.SourceBatchFailed(LASTING, jitter),
            *map(self.skipped, [end for end, _ in self.batches if end > self.copy.fetch_position][:1]),
        )
        found += [(self.fetches, lambda event=event: self.meet(event)) for event in source]  # type: ignore[misc]
        return [move for possible, move in found if possible]

    def can(self, event: type) -> bool:
        return event in TABLE[self.copy.state.phase]

    def meet(self, event: Event) -> None:
        """The reader has not moved: what follows is fetched only if that is asked for."""
        self.fetches = False
        self.report(event)

    def skipped(self, end: int) -> Event:
        """The batch that is fetched next is corrupt, and `end` is the offset behind it."""
        letter = DeadLetter(SOURCE, self.copy.fetch_position, end - 1, "corrupt", 0.0)
        return events.SourceBatchSkipped(letter)

    def lose_transaction(self) -> None:
        """Abort what is not committed: the writer is replaced, and positions are read again."""
        self.queue = PartitionQueue(self.copy.plan.target)
        self.responses.clear()
        self.reads_position = True
        self.report(events.TransactionLost())

    def lose_responses(self) -> None:
        """The connection breaks."""
        for _ in range(len(self.responses)):
            self.responses.pop(0)
            self.fail(is_unclear=True)

    def refuse(self) -> None:
        batch = self.queue.ready[0].batch
        if self.queue.ready[0].is_doubtful:
            return
        self.queue.discard()
        letter = DeadLetter(SOURCE, batch.offsets[0], batch.offsets[-1], "too large", 0.0)
        skips = self.random.random() < 0.5
        self.report(events.TargetBatchSkipped(letter) if skips else events.TargetBatchFailed(LASTING, 0.5))

    def lose_sequence(self) -> None:
        """Lose the sequence of all that are in flight: none is written after that."""
        self.queue.in_flight.clear()
        self.responses.clear()
        self.queue.give_up()
        fenced = self.random.random() < 0.5
        self.report(events.Fenced(LASTING, 5.0) if fenced else events.SequenceLost(LASTING))

    def recreate_target(self) -> None:
        self.log.clear()
        self.queue.give_up()
        self.report(events.TargetRecreated())

    def fail_to_resolve(self) -> None:
        self.resolving = None
        self.report(events.ResolveFailed(self.random.choice([PASSING, LASTING]), 0.5))

    # invariants

    def check(self) -> None:
        copy, state = self.copy, self.copy.state
        assert self.arrived >= set(range(copy.position)), "a position ahead of an acknowledgement"
        assert copy.fetch_position >= copy.position
        assert (state.deadline is not None) == (state.phase in TIMED)
        assert state.deadline == self.timer
        assert self.fetches == (state.phase is Phase.COPYING)
        assert (self.resolving is not None) == (state.phase is Phase.RESOLVING)
        done = state.phase is Phase.COPYING and copy.position == RECORDS
        assert self.moves() or done or state.phase is Phase.STOPPED, f"nothing leads on from {state}"
