"""The states of the model: immutable tuples of small integers."""

from typing import Final, NamedTuple

RADIX: Final = 100
"""A writer is producer * RADIX + epoch: writers order attempts. A record is leader epoch * RADIX + offset."""

NOTHING: Final = -1


class Source(NamedTuple):
    """The source partition. An entry is the leader epoch of a record, or `gone` of that."""

    log: tuple[int, ...]
    start: int = 0
    epoch: int = 0


class Entry(NamedTuple):
    """An offset of the target: a record, a control marker (no sequence) or a foreign record (no writer)."""

    writer: int
    leader: int
    """The leader epoch in the batch's header."""
    sequence: int = NOTHING
    record: int = NOTHING
    first: int = NOTHING
    """The first sequence of the batch that the record is in."""


class KeptBatch(NamedTuple):
    first: int
    last: int
    base: int


class ProducerState(NamedTuple):
    """The target leader's memory of one producer id."""

    producer: int
    writer: int
    batches: tuple[KeptBatch, ...] = ()

    @property
    def last(self) -> int:
        return self.batches[-1].last if self.batches else NOTHING


class Target(NamedTuple):
    """The target partition at its leader."""

    log: tuple[Entry, ...] = ()
    start: int = 0
    high_watermark: int = 0
    producers: tuple[ProducerState, ...] = ()
    leader: int = 0
    """Counts elections. A connection, and what is on its way on it, belongs to one leader."""
    forgotten: int = 0
    """A broker that loads the log again takes no producer state from entries before this offset."""
    stamped: int = 10**6
    """The offset from which the target stamps or recompresses, so contents differ from the source's."""
    newest: int = 0
    """The newest writer that ever stood in the log; nobody knows it."""
    let_in: frozenset[int] = frozenset()
    """Records of batches that a leader should have refused, and had forgotten why; nobody knows these."""
    begins: frozenset[tuple[int, int]] = frozenset()
    """Each writer that began, and the offset where it did; only properties use it."""
    lost: frozenset[tuple[int, int]] = frozenset()
    """Records that unclean elections removed, and the offsets where they stood; nobody knows these."""


class End(NamedTuple):
    """The source's next offset and leader epoch behind this number of an attempt's records."""

    records: int
    offset: int
    epoch: int

    def after(self, records: int) -> "End":
        return End(records, self.offset + records - self.records, self.epoch)


CLAIMED: Final = 0
OPEN: Final = 1
CLOSED: Final = 2
"""The stages of an attempt."""


class Acknowledged(NamedTuple):
    """So many records of an attempt, and where the target ended behind them."""

    records: int
    target_end: int


class Record(NamedTuple):
    """The record of an attempt."""

    writer: int
    stage: int = CLAIMED
    begin: int = 0
    """The target offset where what it writes begins; a closed one has written everything below."""
    ends: tuple[End, ...] = ()
    acknowledged: Acknowledged | None = None
    """When its ends were recorded behind its beginning."""


class Position(NamedTuple):
    """The sequence, source offset and target offset behind a writer's last acknowledged record."""

    writer: int
    sequence: int
    offset: int
    epoch: int
    target_end: int


class Batch(NamedTuple):
    writer: int
    sequence: int
    records: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.sequence + len(self.records) - 1


class Sent(NamedTuple):
    """A batch that is not acknowledged, and the answer to it: a base offset or one of the constants below."""

    batch: Batch
    answer: int


NO_ANSWER: Final = -1
FENCED: Final = -3
OUT_OF_ORDER: Final = -4
"""-4 instead of -2, whose hash is that of -1."""


class Request(NamedTuple):
    """A Produce request on its way. Requests of one connection arrive in order."""

    connection: int
    batch: Batch


IDLE: Final = 0
CLAIM: Final = 1
RECORD: Final = 2
READ: Final = 3
ADD: Final = 4
END: Final = 5
AWAIT: Final = 6
READ_AGAIN: Final = 7
POSITION: Final = 8
LOOK: Final = 9
BEGIN: Final = 10
STORE: Final = 11
COPY: Final = 12
PAUSED: Final = 13
"""The task has failed, or was fenced, and begins another attempt some time."""
DONE: Final = 14
DEAD: Final = 15
"""The phases of a task."""


class Task(NamedTuple):
    """A copy task, which makes one attempt after another."""

    phase: int = IDLE
    writer: int = 0
    """The writer of its attempt."""
    settled: int = 0
    """The task's earlier attempt, if that has nothing unanswered and sends nothing more."""
    position: Position | None = None
    """The position that the task knows, from acknowledgements or as stored."""
    is_stored: bool = True
    """Whether that was read from the store."""
    known: tuple[Record, ...] = ()
    """The attempts before, while it starts."""
    marker: int = NOTHING
    """The place where the marker is looked for, and then where it was seen."""
    offset: int = 0
    """The next one to fetch."""
    epoch: int = NOTHING
    """The leader epoch that the next Fetch names as that of the record before."""
    begin: int = 0
    """The target offset where the attempt began."""
    ends: tuple[End, ...] = ()
    taken: int = 0
    """The number of records that were sent."""
    sent: tuple[Sent, ...] = ()
    is_due: bool = False
    """Whether its ends must be recorded with the next batch, or in a mutant after that."""
    must_store: bool = False
    """Whether it continues behind an incident that is not stored yet."""
    leader: int = 0
    connection: int = 0
    doubted: int = NOTHING
    """The place of the last entry when another leader was found, until that is looked for."""

    @property
    def acknowledged(self) -> Position:
        assert self.position is not None
        return self.position


class Coordinator(NamedTuple):
    """The transaction coordinator's view of the transactional id."""

    writer: int
    status: int = 0
    marker: int = NOTHING
    """The writer of the newest marker of this partition."""
    offset: int = NOTHING
    """The offset, once the leader has appended it."""


EMPTY: Final = 0
ONGOING: Final = 1
ENDING: Final = 2


class Faults(NamedTuple):
    """The faults that may still happen, and how often."""

    append: int = 0
    control: int = 0
    compact: int = 0
    expire: int = 0
    elect: int = 0
    cut: int = 0
    foreign: int = 0
    truncate: int = 0
    fail_over: int = 0
    retain: int = 0
    forget: int = 0
    restamp: int = 0
    mark_again: int = 0
    drop: int = 0
    silence: int = 0
    resend: int = 0
    crash: int = 0
    stop: int = 0
    renew: int = 0
    again: int = 0
    expire_id: int = 0


Incident = tuple[str, int, int]
"""Kind, and the source offsets that it speaks of: from the first up to, not including, the second."""


class State(NamedTuple):
    source: Source
    target: Target
    coordinator: Coordinator
    tasks: tuple[Task, ...]
    faults: Faults
    records: tuple[Record, ...] = ()
    position: Position | None = None
    network: tuple[Request, ...] = ()
    incidents: frozenset[Incident] = frozenset()


def epoch_of(record: int) -> int:
    return record // RADIX


def offset_of(record: int) -> int:
    return record % RADIX


def recorded(records: tuple[Record, ...], new: Record) -> tuple[Record, ...]:
    """The topic is compacted: one record for each attempt."""
    return tuple(sorted([*(record for record in records if record.writer != new.writer), new]))
