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
    aside: tuple[int, ...] = ()
    """The log of a leader that an unclean election has put aside; it may come back."""


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
    """What the leader of the target partition remembers of one producer id."""

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
    """From this offset on the target writes timestamps of its own, so contents differ from the source's."""
    lost: frozenset[tuple[int, int]] = frozenset()
    """Records that unclean elections removed, and the offsets where they stood; nobody knows these."""


class Lineage(NamedTuple):
    """The leader epochs of what was read: (epoch, end) for each, from `base` on."""

    base: int = 0
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def claim(self) -> int:
        """The leader epoch that a Fetch names as that of the record before its offset."""
        return self.epochs[-1][0] if self.epochs else NOTHING

    def read(self, epoch: int, end: int) -> "Lineage":
        kept = self.epochs[:-1] if self.claim == epoch else self.epochs
        return Lineage(self.base, (*kept, (epoch, end)))

    def common(self, epoch: int, end: int) -> "Lineage":
        """The part that agrees with a log whose epochs up to `epoch` end at `end`."""
        return Lineage(self.base, tuple(pair for pair in self.epochs if pair[0] <= epoch)).until(end)

    def agreed(self, newer: "Lineage") -> "Lineage":
        """The part that a newer reading did not leave out."""
        if newer.base >= self.end:
            return self
        both = range(max(self.base, newer.base), min(self.end, newer.end))
        differing = (offset for offset in both if self._epoch_at(offset) != newer._epoch_at(offset))
        return self.until(next(differing, newer.end))

    def until(self, end: int) -> "Lineage":
        kept = Lineage(min(self.base, end))
        for epoch, epoch_end in self.epochs:
            if kept.end < end:
                kept = kept.read(epoch, min(end, epoch_end))
        return kept

    def _epoch_at(self, offset: int) -> int:
        return next(epoch for epoch, end in self.epochs if offset < end)

    @property
    def end(self) -> int:
        return self.epochs[-1][1] if self.epochs else self.base


class Run(NamedTuple):
    """The source offset of each sequence of `writer`, from `sequence` at `offset` of leader epoch `epoch` on.

    Without a leader epoch it only says where reading goes on: at an attempt's start, and after an incident.
    """

    writer: int
    number: int
    sequence: int
    offset: int
    epoch: int
    lineage: Lineage
    """Of what was read before."""
    marker: int
    """The target offset of the writer's marker, and the target's leader epoch there."""
    leader: int
    has_diverged: bool = False
    """Whether this is a start because the source was truncated."""


def stored(runs: tuple[Run, ...], new: Run) -> tuple[Run, ...]:
    """The run store is compacted: one run for each writer and number."""
    others = [run for run in runs if (run.writer, run.number) != (new.writer, new.number)]
    return tuple(sorted([*others, new]))


class Position(NamedTuple):
    """The last acknowledged record of a writer."""

    writer: int
    record: int
    sequence: int
    target_end: int
    leader: int
    """The target's leader epoch that acknowledged it."""


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
"""Not -2, which has the hash of -1."""


class Request(NamedTuple):
    """A Produce request on its way. Those of one connection arrive in order."""

    connection: int
    batch: Batch


IDLE: Final = 0
INIT: Final = 1
ADD: Final = 2
END: Final = 3
WAIT: Final = 4
RUNS: Final = 5
LOOK: Final = 6
COPY: Final = 7
DONE: Final = 8
DEAD: Final = 9
"""The phases of an attempt."""


class Attempt(NamedTuple):
    phase: int = IDLE
    writer: int = 0
    runs: tuple[Run, ...] = ()
    """What it has read of the run store, until it has looked at the target."""
    position: Position | None = None
    marker: int = NOTHING
    marker_leader: int = 0
    leader: int = 0
    lineage: Lineage = Lineage()
    """Of what is read; its end is the next offset to fetch."""
    sequence: int = 0
    run: int = 0
    """Runs stored so far."""
    follows: tuple[int, int] = (NOTHING, NOTHING)
    """Offset and leader epoch that continue the last run."""
    unstored: tuple[Run, ...] = ()
    """Runs that should be stored by now: only in a mutant."""
    expected: int = 0
    """The target offset of the next acknowledgement, if nobody else writes."""
    acked: Position | None = None
    is_stored: bool = True
    sent: tuple[Sent, ...] = ()
    connection: int = 0


class Coordinator(NamedTuple):
    """The transaction coordinator's view of the transactional id."""

    writer: int
    status: int = 0
    marker: int = NOTHING
    """The writer of the newest marker of this partition."""
    offset: int = NOTHING
    """Its offset, once the leader has appended it."""


EMPTY: Final = 0
ONGOING: Final = 1
ENDING: Final = 2


class Faults(NamedTuple):
    """What may still happen, and how often."""

    append: int = 0
    control: int = 0
    compact: int = 0
    expire: int = 0
    elect: int = 0
    cut: int = 0
    revive: int = 0
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
    sibling: int = 0
    expire_id: int = 0
    lose_runs: int = 0


Incident = tuple[str, int, int]
"""Kind, and the source offsets that it speaks of: from the first up to, not including, the second."""


class State(NamedTuple):
    source: Source
    target: Target
    coordinator: Coordinator
    attempts: tuple[Attempt, ...]
    faults: Faults
    runs: tuple[Run, ...] = ()
    position: Position | None = None
    network: tuple[Request, ...] = ()
    incidents: frozenset[Incident] = frozenset()
    looked: int = 0
    """The source's leader epoch when the newest attempt learned of a truncation; only properties use it."""


def epoch_of(record: int) -> int:
    return record // RADIX


def offset_of(record: int) -> int:
    return record % RADIX
