"""The table of a partition's phases: complete, never stuck, and drawn in the design document."""

import random
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.copy import partition_events as events
from sparkmirror.copy.copy_state import CopyState, Phase
from sparkmirror.copy.partition_events import Do, Event
from sparkmirror.copy.partition_states import TABLE, ImpossibleEventError, step
from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.incidents import Incident, IncidentKind, target_overwritten
from sparkmirror.storage.dead_letters import DeadLetter
from tests.support.state_diagram import PAGE, updated
from tests.unit.copy.partition_world import LASTING, PASSING, RECORDS, SOURCE, PartitionWorld

COPYING = CopyState(Phase.COPYING)


def test_the_page_on_states_shows_the_tables() -> None:
    text = PAGE.read_text()
    assert updated(text) == text, "run `python -m tests.support.state_diagram`"


def test_every_phase_leads_on_and_every_phase_is_reached() -> None:
    for phase in set(Phase) - {Phase.STOPPED}:
        assert any(move.to is not phase for event, move in TABLE[phase].items() if event is not events.Stop)
    reached, found = {Phase.WAITING}, {Phase.WAITING}
    while found:
        found = {move.to for phase in found for move in TABLE[phase].values()} - reached
        reached |= found
    assert reached == set(Phase)


@pytest.mark.parametrize("phase", Phase)
def test_an_event_that_is_not_in_the_table_raises(phase: Phase) -> None:
    everything = {event for row in TABLE.values() for event in row}
    for missing in everything - set(TABLE[phase]):
        event: Event = object.__new__(missing)  # its fields are not read
        with pytest.raises(ImpossibleEventError):
            step(CopyState(phase), event, 0.0)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**48))
def test_whatever_goes_wrong_everything_is_copied_once_things_work_again(seed: int) -> None:
    world = PartitionWorld(random.Random(seed))
    for _ in range(100):
        moves = world.misfortunes() if world.random.random() < 0.3 else world.moves()
        if moves:
            world.random.choice(moves)()
        world.check()
    for _ in range(2000):
        world.check()
        if world.copy.position == RECORDS and not world.copy.outstanding_bytes:
            return
        world.random.choice(world.moves())()
    pytest.fail(f"{world.copy.position} of {RECORDS} are copied, {world.copy.state}")


def test_the_walks_visit_every_phase() -> None:
    visited: set[Phase] = set()
    for seed in range(200):
        world = PartitionWorld(random.Random(seed))
        for _ in range(100):
            moves = world.misfortunes() if world.random.random() < 0.3 else world.moves()
            if moves:
                world.random.choice(moves)()
        visited |= world.visited
        world.report(events.Stop())
        world.check()
    assert visited >= set(Phase) - {Phase.STOPPED}


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.STOPPED])
def test_a_lost_transaction_leaves_nothing_under_way(phase: Phase) -> None:
    state = CopyState(phase, deadline=9.0 if phase is Phase.FAILED else None)
    after, instructions = step(state, events.TransactionLost(), 1.0)
    assert (after.phase, after.deadline) == (Phase.WAITING, None)
    assert (Do.CANCEL_TIMER in instructions) == (phase is Phase.FAILED)
    assert (Do.CANCEL_RESOLVE in instructions) == (phase is Phase.RESOLVING)
    assert (Do.CANCEL_LOOK_UP in instructions) == (phase is Phase.LOOKING_UP)


def after(state: CopyState, *happened: Event) -> CopyState:
    for event in happened:
        state = step(state, event, 0.0).state
    return state


def test_an_error_that_needs_a_user_is_not_hidden_by_one_that_passes() -> None:
    refused = after(COPYING, events.TargetBatchFailed(LASTING, 0.5))
    assert after(refused, events.TransactionFailed(PASSING)).error is LASTING
    assert after(refused, events.WritePossible()).error is LASTING
    failed = after(COPYING, events.WriteFailed(PASSING))
    assert after(failed, events.WritePossible()).error is None


def test_a_transactions_error_ends_with_it_and_no_other_does() -> None:
    failed = after(COPYING, events.TransactionFailed(PASSING))
    assert failed.error is PASSING
    assert after(failed, events.TransactionRecovered(PASSING)).error is None
    other = replace(failed, write_error=RetriableError("another"))
    assert after(other, events.TransactionRecovered(PASSING)).error is other.write_error


def test_an_acknowledgement_ends_errors_of_writing() -> None:
    failed = CopyState(Phase.COPYING, write_error=RetriableError("x"), failures=4)
    assert after(failed, events.WriteWorks()) == COPYING


def test_a_start_ends_all_errors() -> None:
    failed = CopyState(
        Phase.RESOLVING, fetch_error=RetriableError("x"), write_error=KafkaError("INVALID_TIMESTAMP")
    )
    start = events.Start(10, None)  # type: ignore[arg-type]  # not looked at
    assert after(failed, events.Resolved(start)).error is None


def test_what_stands_in_the_way_of_a_start_replaces_what_it_was_looked_for() -> None:
    """The first look-up followed an offset mismatch: the situation may be another one by now."""
    mismatch = Incident(IncidentKind.OFFSET_MISMATCH, "a record is at another offset")
    stopped = after(COPYING, events.OffsetMismatch(mismatch), events.Drained())
    assert "at another offset" in str(after(stopped, events.ResolveFailed(PASSING, 0.5)).error)
    assert after(stopped, events.ResolveFailed(LASTING, 0.5)).error is LASTING


def test_waits_grow_until_it_is_acknowledged() -> None:
    state, waits = COPYING, []
    for _ in range(3):
        state = after(state, events.TargetBatchFailed(LASTING, 0.5))
        waits.append(state.deadline)
        state = after(state, events.TimerExpired())
    assert waits == [1.0, 2.0, 4.0]
    assert after(state, events.WriteWorks(), events.TargetBatchFailed(LASTING, 0.5)).deadline == 1.0


def test_a_refused_sequence_is_sent_again_after_twelve_looks() -> None:
    state = after(COPYING, events.SequenceLost(LASTING))
    distrusted = []
    while state.attempts < 13:
        state = after(state, events.ResolveFailed(PASSING, 0.5))
        state, instructions = step(state, events.TimerExpired(), 0.0)
        (resolve,) = instructions
        assert isinstance(resolve, events.Resolve)
        distrusted.append(resolve.reason.is_distrusted)
    assert distrusted == [True] * 11 + [False, False]


@pytest.mark.parametrize("phase", Phase)
def test_a_lost_entry_is_reported_each_time_and_its_fence_distrusted(phase: Phase) -> None:
    overwritten = target_overwritten(SOURCE, 3)
    state = CopyState(phase)
    noted = (events.Note(overwritten, repeats=True), Do.DISTRUST)
    assert step(state, events.LastEntryLost(overwritten), 0.0) == (state, noted)
    assert step(state, events.LastEntryLost(None), 0.0) == (state, (Do.DISTRUST,))


LETTER: Final = DeadLetter(SOURCE, 21, 23, "corrupt", 0.0)


@pytest.mark.parametrize(
    "discards",
    [
        events.SequenceLost(LASTING),
        events.TargetBatchFailed(LASTING, 0.5),
        events.TargetRecreated(),
        events.BufferNeeded(0.5),
    ],
)
def test_a_skip_is_forgotten_when_batches_before_it_are_discarded(discards: events.Event) -> None:
    """The skip's position is behind them: they would be lost."""
    draining = after(COPYING, events.SourceBatchSkipped(LETTER))
    assert draining.reason.skipped == LETTER
    state, instructions = step(draining, discards, 0.0)
    assert state.phase is not Phase.DRAINING
    assert not any(isinstance(do, events.Resolve) and do.reason.skipped for do in instructions)


def test_a_fenced_partition_reads_its_position_again_whatever_else_it_drained_for() -> None:
    draining = after(COPYING, events.OutOfRange())
    fenced = after(draining, events.Fenced(LASTING, 5.0))
    state, instructions = step(fenced, events.TimerExpired(), 5.0)
    assert (state.phase, instructions) == (Phase.WAITING, (Do.READ_POSITION,))
    assert after(state, events.PositionRead(None)).reason == events.ResumeReason(is_stored=True)
