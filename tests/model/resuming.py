"""The first half of an attempt: its epoch, its marker, the runs, and the target read back."""

from collections.abc import Iterator

from tests.model.resume import start_of
from tests.model.rules import Fence, Setting
from tests.model.state import (
    ADD,
    COPY,
    DEAD,
    EMPTY,
    END,
    ENDING,
    INIT,
    LOOK,
    NOTHING,
    ONGOING,
    RADIX,
    RUNS,
    WAIT,
    Attempt,
    Coordinator,
    Entry,
    Lineage,
    Run,
    State,
    Target,
    stored,
)
from tests.model.steps import Move, World, step, with_attempt


def restarted(attempt: Attempt) -> Attempt:
    """It asks for a new epoch and reads back, on new connections."""
    return Attempt(INIT, attempt.writer, connection=attempt.connection + 1)


def next_writer(setting: Setting, writer: int) -> int:
    """A new producer id follows the last epoch."""
    return writer + 1 if writer % RADIX < setting.epoch_max else (writer // RADIX + 1) * RADIX + 1


def resuming_moves(world: World, state: State, slot: int, attempt: Attempt) -> Iterator[Move]:
    coordinator, phase = state.coordinator, attempt.phase
    if phase == INIT and coordinator.status != ENDING:
        yield initialise, (slot,)
    elif phase == ADD and _may_add(world, state, attempt):
        yield add_partition, (slot,)
    elif phase == END:
        yield end_transaction, (slot,)
    elif phase == WAIT:
        yield from _waiting_moves(state, slot, attempt)
    elif phase == RUNS:
        yield read_runs, (slot,)
    elif phase == LOOK:
        yield read_target, (slot,)


def _waiting_moves(state: State, slot: int, attempt: Attempt) -> Iterator[Move]:
    coordinator = state.coordinator
    if _marker_offset(state.target, attempt.writer) != NOTHING:
        yield see_marker, (slot,)
    elif coordinator.status != ENDING or coordinator.marker != attempt.writer:
        yield miss_marker, (slot,)


def _may_add(world: World, state: State, attempt: Attempt) -> bool:
    """The coordinator refuses an older attempt at once, and lets the newest wait while a transaction ends."""
    coordinator = state.coordinator
    if coordinator.writer != attempt.writer:
        return True
    return coordinator.status == EMPTY and _may_fence(world, state, attempt)


def _may_fence(world: World, state: State, attempt: Attempt) -> bool:
    """A marker does not reach attempts of another producer id, nor what they have sent.

    The model knows these attempts. A real one waits until the positions they wrote are older than
    any frozen process can be.
    """
    live = (other.writer for other in state.attempts if ADD <= other.phase <= COPY)
    sent = (request.batch.writer for request in state.network)
    is_new = any(writer // RADIX < attempt.writer // RADIX for writer in (*live, *sent))
    return not (is_new and world.rules.waits_for_old_id)


@step("A{0} asks for an epoch")
def initialise(world: World, state: State, slot: int) -> State:
    rules, setting = world
    attempt, coordinator = state.attempts[slot - 1], state.coordinator
    is_renewal = attempt.writer and not setting.is_shared
    if is_renewal and attempt.writer != coordinator.writer:
        return with_attempt(state, slot, Attempt(DEAD))
    if coordinator.status == ONGOING:
        return state._replace(coordinator=aborted(coordinator))
    writer = next_writer(setting, coordinator.writer)
    phase = ADD if rules.fence is Fence.BEFORE_READING else RUNS
    after = with_attempt(state, slot, attempt._replace(phase=phase, writer=writer))
    return after._replace(coordinator=coordinator._replace(writer=writer))


def aborted(coordinator: Coordinator) -> Coordinator:
    """InitProducerId over an open transaction: a marker with an epoch that no attempt gets."""
    fence = coordinator.writer + 1
    return Coordinator(fence, ENDING, fence)


@step("A{0} adds the partition to a transaction")
def add_partition(world: World, state: State, slot: int) -> State:
    attempt = state.attempts[slot - 1]
    if state.coordinator.writer != attempt.writer:
        return _fenced(world, state, slot)
    after = with_attempt(state, slot, attempt._replace(phase=END))
    return after._replace(coordinator=state.coordinator._replace(status=ONGOING))


@step("A{0} ends the transaction")
def end_transaction(world: World, state: State, slot: int) -> State:
    attempt = state.attempts[slot - 1]
    if state.coordinator.writer != attempt.writer:
        return _fenced(world, state, slot)
    writer = attempt.writer + world.setting.raises_epoch
    after = with_attempt(state, slot, attempt._replace(phase=WAIT, writer=writer))
    return after._replace(coordinator=Coordinator(writer, ENDING, writer))


def _fenced(world: World, state: State, slot: int) -> State:
    """The coordinator knows a newer epoch: a successor's, or with a shared id perhaps another task's."""
    attempt = state.attempts[slot - 1]
    after = restarted(attempt) if world.setting.is_shared else Attempt(DEAD)
    return with_attempt(state, slot, after)


@step("A{0} sees its marker")
def see_marker(world: World, state: State, slot: int) -> State:
    attempt = state.attempts[slot - 1]
    marker = _marker_offset(state.target, attempt.writer)
    is_late = world.rules.fence is Fence.AFTER_READING
    return with_attempt(
        state,
        slot,
        attempt._replace(
            phase=COPY if is_late else RUNS,
            marker=marker,
            marker_leader=state.target.log[marker].leader,
            expected=marker + 1,
            leader=state.target.leader,
        ),
    )


@step("A{0} finds no marker of its own")
def miss_marker(world: World, state: State, slot: int) -> State:
    """It was there and the log has lost it."""
    return with_attempt(state, slot, restarted(state.attempts[slot - 1]))


@step("A{0} reads the runs")
def read_runs(world: World, state: State, slot: int) -> State:
    attempt = state.attempts[slot - 1]._replace(phase=LOOK, runs=state.runs, position=state.position)
    return with_attempt(state, slot, attempt)


@step("A{0} reads the target back")
def read_target(world: World, state: State, slot: int) -> State:
    rules, target, attempt = world.rules, state.target, state.attempts[slot - 1]
    if rules.fence is not Fence.BEFORE_READING:
        attempt = attempt._replace(marker=target.high_watermark, expected=target.high_watermark)
    elif not _is_there(target, attempt):
        return with_attempt(state, slot, restarted(attempt))
    start = start_of(rules, state.source, target, attempt)
    lineage = start.lineage
    if not rules.claims_copied_epoch and lineage.epochs:
        lineage = lineage._replace(epochs=((state.source.epoch, lineage.end),))
    phase = ADD if rules.fence is Fence.AFTER_READING else COPY
    if rules.fence is Fence.NONE:
        attempt = attempt._replace(marker=target.high_watermark - 1)
    copying = attempt._replace(phase=phase, runs=(), position=None, leader=target.leader)
    noted = state._replace(incidents=state.incidents.union(start.incidents))
    return with_start(world, noted, slot, copying, lineage)


def with_start(
    world: World, state: State, slot: int, attempt: Attempt, lineage: Lineage, *, has_diverged: bool = False
) -> State:
    """The attempt goes on at the lineage's end, which is stored before anything that is read there."""
    attempt = attempt._replace(lineage=lineage, follows=(NOTHING, NOTHING))
    if not world.rules.stores_starts:
        return with_attempt(state, slot, attempt)
    marker = marker_of(attempt)
    start = Run(
        attempt.writer, attempt.run, attempt.sequence, lineage.end, NOTHING, lineage, *marker, has_diverged
    )
    after = with_attempt(state, slot, attempt._replace(run=attempt.run + 1))
    return after._replace(runs=stored(state.runs, start))


def marker_of(attempt: Attempt) -> tuple[int, int]:
    """Its offset and leader epoch: what stands there again after a truncation has another epoch."""
    return attempt.marker, attempt.marker_leader


def _is_there(target: Target, attempt: Attempt) -> bool:
    at = attempt.marker
    return target.start <= at < target.high_watermark and target.log[at] == Entry(
        attempt.writer, attempt.marker_leader
    )


def _marker_offset(target: Target, writer: int) -> int:
    """Of its first marker; consumers see what is below the high watermark."""
    for offset in range(target.start, target.high_watermark):
        entry = target.log[offset]
        if entry.writer == writer and entry.sequence == NOTHING:
            return offset
    return NOTHING
