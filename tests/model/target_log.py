"""The target partition: how its leader judges batches and markers, and what happens to its log."""

from collections.abc import Iterator
from typing import Final

from tests.model.state import (
    FENCED,
    NO_ANSWER,
    OUT_OF_ORDER,
    RADIX,
    Batch,
    Entry,
    KeptBatch,
    ProducerState,
    Target,
)

_KEPT: Final = 5
FOREIGN: Final = 0


def producer_state(target: Target, writer: int) -> ProducerState | None:
    producer = writer // RADIX
    return next((state for state in target.producers if state.producer == producer), None)


def judged(target: Target, batch: Batch) -> int:
    """The base offset of a batch that is there already, an error, or no answer yet for one to append."""
    state = producer_state(target, batch.writer)
    if state is None:
        return NO_ANSWER
    if batch.writer < state.writer:
        return FENCED
    if batch.writer > state.writer:
        return OUT_OF_ORDER if batch.sequence else NO_ANSWER
    for kept in state.batches:
        if (kept.first, kept.last) == (batch.sequence, batch.last):
            return kept.base
    return NO_ANSWER if batch.sequence == state.last + 1 else OUT_OF_ORDER


def produced(target: Target, batch: Batch) -> tuple[Target, int]:
    """The target after a Produce request, and the answer."""
    answer = judged(target, batch)
    if answer != NO_ANSWER:
        return target, answer
    base = len(target.log)
    state = producer_state(target, batch.writer)
    kept = state.batches if state is not None and state.writer == batch.writer else ()
    kept = (*kept, KeptBatch(batch.sequence, batch.last, base))[-_KEPT:]
    entries = tuple(
        Entry(batch.writer, target.leader, batch.sequence + at, record, batch.sequence)
        for at, record in enumerate(batch.records)
    )
    is_let_in = batch.writer < target.newest or _has_sequence_from(target, batch)
    after = target._replace(
        log=target.log + entries,
        newest=max(target.newest, batch.writer),
        let_in=target.let_in.union(batch.records) if is_let_in else target.let_in,
    )
    return _remembering(after, ProducerState(batch.writer // RADIX, batch.writer, kept)), base


def _has_sequence_from(target: Target, batch: Batch) -> bool:
    return any(entry.writer == batch.writer and entry.sequence >= batch.sequence for entry in target.log)


def marked(target: Target, writer: int) -> Target | None:
    """The target with a control marker, None if its leader refuses that."""
    state = producer_state(target, writer)
    if state is not None and writer < state.writer:
        return None
    kept = state.batches if state is not None and state.writer == writer else ()
    log = (*target.log, Entry(writer, target.leader))
    after = target._replace(log=log, newest=max(target.newest, writer))
    return _remembering(after, ProducerState(writer // RADIX, writer, kept))


def foreign_appended(target: Target) -> Target:
    return target._replace(log=(*target.log, Entry(FOREIGN, target.leader)))


def replicated(target: Target) -> Target:
    return target._replace(high_watermark=len(target.log))


def elected(target: Target, end: int) -> Target:
    """A new leader, whose log ends at `end`. It knows the last batch of each producer."""
    log = target.log[:end]
    return target._replace(
        log=log,
        start=min(target.start, end),
        high_watermark=min(target.high_watermark, end),
        leader=target.leader + 1,
        forgotten=min(target.forgotten, end),
        producers=_loaded(log, min(target.forgotten, end)),
        lost=target.lost.union(
            (target.log[at].record, at) for at in range(end, target.high_watermark) if is_data(target.log[at])
        ),
    )


def expired(target: Target, start: int) -> Target:
    return target._replace(start=start)


def forgotten(target: Target) -> Target:
    """All producers have expired."""
    return target._replace(producers=(), forgotten=len(target.log))


def stamped(target: Target) -> Target:
    return target._replace(stamped=len(target.log))


def ends_of_batches(target: Target) -> Iterator[int]:
    """Below the high watermark, where a leader's log may end that lacks what was acknowledged."""
    for offset, entry in enumerate(target.log[: target.high_watermark]):
        if entry.sequence == entry.first:
            yield offset


def is_data(entry: Entry) -> bool:
    return entry.sequence >= 0


def _remembering(target: Target, state: ProducerState) -> Target:
    others = [other for other in target.producers if other.producer != state.producer]
    return target._replace(producers=tuple(sorted([*others, state])))


def _loaded(log: tuple[Entry, ...], begin: int) -> tuple[ProducerState, ...]:
    states: dict[int, ProducerState] = {}
    for offset in range(begin, len(log)):
        entry = log[offset]
        if not entry.writer:
            continue
        producer = entry.writer // RADIX
        before = states.get(producer)
        kept = before.batches if before is not None and before.writer == entry.writer else ()
        if is_data(entry):
            kept = (KeptBatch(entry.first, entry.sequence, offset - (entry.sequence - entry.first)),)
        states[producer] = ProducerState(producer, entry.writer, kept)
    return tuple(sorted(states.values()))
