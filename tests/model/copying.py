"""The second half of an attempt: fetch, store the run, send, take acknowledgements, store the position."""

from collections.abc import Iterator

from tests.model.incidents import (
    DOUBLED,
    EVERYTHING,
    FOREIGN,
    RECORDS_LOST,
    SOURCE_TRUNCATED,
    TARGET_LOST,
    UNCERTAIN,
)
from tests.model.resuming import marker_of, restarted, with_start
from tests.model.source_log import divergence, epoch_at, is_record
from tests.model.state import (
    DEAD,
    DONE,
    FENCED,
    LOOK,
    NO_ANSWER,
    OUT_OF_ORDER,
    RADIX,
    Attempt,
    Batch,
    Entry,
    Incident,
    Lineage,
    Position,
    Request,
    Run,
    Sent,
    Source,
    State,
    Target,
    offset_of,
    stored,
)
from tests.model.steps import Move, World, step, with_attempt
from tests.model.target_log import is_data


def copying_moves(world: World, state: State, slot: int, attempt: Attempt) -> Iterator[Move]:
    if attempt.unstored:
        yield store_late_run, (slot,)
    if not attempt.is_stored:
        yield store_position, (slot,)
    if attempt.leader != state.target.leader:
        yield check_leader, (slot,)
        return
    yield from _writing_moves(world, state, slot, attempt)
    yield from _reading_moves(world, state, slot, attempt)


def _writing_moves(world: World, state: State, slot: int, attempt: Attempt) -> Iterator[Move]:
    if not attempt.sent:
        return
    first = attempt.sent[0]
    if any(sent.answer == FENCED for sent in attempt.sent):
        yield end_fenced, (slot,)
    if first.answer >= 0 and first.answer + len(first.batch.records) <= state.target.high_watermark:
        yield acknowledge, (slot,)
    elif first.answer == OUT_OF_ORDER:
        yield read_back_again, (slot,)
    unclear = [sent.batch for sent in attempt.sent if sent.answer == NO_ANSWER]
    if not unclear:
        return
    is_under_way = any(request.batch == unclear[0] for request in state.network)
    if is_under_way and not state.faults.resend:
        return
    if world.setting.is_old and world.rules.waits_if_old:
        yield give_up_waiting, (slot, int(is_under_way))
    else:
        yield resend, (slot, int(is_under_way))


def _reading_moves(world: World, state: State, slot: int, attempt: Attempt) -> Iterator[Move]:
    source, at = state.source, attempt.lineage.end
    if divergence(source, at, attempt.lineage.claim) is not None:
        yield follow_divergence, (slot,)
    elif not source.start <= at <= len(source.log):
        yield skip_lost, (slot,)
    else:
        offset = _next_record(source, at)
        if offset == len(source.log):
            if offset > at:
                yield skip_gap, (slot,)
            elif not attempt.sent and not attempt.unstored:
                yield finish, (slot,)
        elif _has_room(world, attempt):
            for count in range(1, _batch_max(world, source, offset) + 1):
                yield copy, (slot, count)


def _has_room(world: World, attempt: Attempt) -> bool:
    rules, setting = world
    window = 1 if setting.is_old and rules.waits_if_old else setting.window
    return len(attempt.sent) < window and all(sent.answer >= NO_ANSWER for sent in attempt.sent)


def _next_record(source: Source, offset: int) -> int:
    while offset < len(source.log) and not is_record(source.log[offset]):
        offset += 1
    return offset


def _batch_max(world: World, source: Source, offset: int) -> int:
    """A batch has records of one leader epoch, without gaps."""
    alike = 1
    while offset + alike < len(source.log) and source.log[offset + alike] == source.log[offset]:
        alike += 1
    return min(alike, world.setting.batch_max)


# source


@step("A{0} copies a batch of {1}")
def copy(world: World, state: State, slot: int, count: int) -> State:
    """Fetch, store the run if this is one, and send.

    A crash between these steps is a crash before or after all of them, and a batch that is not sent yet is
    like one that is on its way for long.
    """
    rules, source, attempt = world.rules, state.source, state.attempts[slot - 1]
    offset = _next_record(source, attempt.lineage.end)
    epoch = source.log[offset]
    lineage = _past_gap(rules.claims_read_epoch, source, attempt.lineage, offset)
    run, runs, unstored = attempt.run, state.runs, attempt.unstored
    if attempt.follows != (offset, epoch):
        new = Run(attempt.writer, run, attempt.sequence, offset, epoch, lineage, *marker_of(attempt))
        run += 1
        if rules.writes_ahead:
            runs = stored(runs, new)
        else:
            unstored = (*unstored, new)
    records = tuple(epoch * RADIX + at for at in range(offset, offset + count))
    batch = Batch(attempt.writer, attempt.sequence, records)
    copied = attempt._replace(
        lineage=lineage.read(epoch, offset + count),
        sequence=attempt.sequence + count,
        run=run,
        follows=(offset + count, epoch),
        unstored=unstored,
        sent=(*attempt.sent, Sent(batch, NO_ANSWER)),
    )
    network = (*state.network, Request(attempt.connection, batch))
    return with_attempt(state, slot, copied)._replace(runs=runs, network=network)


@step("A{0} reads past a gap")
def skip_gap(world: World, state: State, slot: int) -> State:
    attempt, source = state.attempts[slot - 1], state.source
    lineage = _past_gap(world.rules.claims_read_epoch, source, attempt.lineage, len(source.log))
    return with_attempt(state, slot, attempt._replace(lineage=lineage))


def _past_gap(claims_read_epoch: bool, source: Source, lineage: Lineage, end: int) -> Lineage:
    for offset in range(lineage.end, end):
        is_kept = not claims_read_epoch and lineage.epochs
        lineage = lineage.read(lineage.claim if is_kept else epoch_at(source, offset), offset + 1)
    return lineage


@step("A{0} learns that the source was truncated")
def follow_divergence(world: World, state: State, slot: int) -> State:
    """The answer says where an epoch ends; if that was not read, the next Fetch claims the one before."""
    attempt, source = state.attempts[slot - 1], state.source
    found = divergence(source, attempt.lineage.end, attempt.lineage.claim)
    assert found is not None
    epoch, end = found
    if world.rules.keeps_lineage:
        lineage = attempt.lineage.common(epoch, end)
    else:
        lineage = Lineage(0, ((epoch, min(end, attempt.lineage.end)),))
    incident = (SOURCE_TRUNCATED, 0, end if end == source.start else 0)
    if not _has_reading_successor(state, attempt.writer):
        state = state._replace(looked=source.epoch)
    return _moved(world, state, slot, lineage, incident)


def _has_reading_successor(state: State, writer: int) -> bool:
    """A newer attempt that has read the runs does not learn of this start, and later ones go by its own."""
    readers = (other.writer for other in state.attempts if other.phase == LOOK)
    return any(newer > writer for newer in (*readers, *(run.writer for run in state.runs)))


@step("A{0} learns that its offset is out of range")
def skip_lost(world: World, state: State, slot: int) -> State:
    """Below the log start, or above the end where no record before says in which epoch.

    If the leader epoch at the log start is another, an unclean election may have replaced records before
    those that are missed, and nothing is left that shows it.
    """
    attempt, source = state.attempts[slot - 1], state.source
    at, claim = attempt.lineage.end, attempt.lineage.claim
    if at > len(source.log):
        return _moved(world, state, slot, Lineage(len(source.log)), (SOURCE_TRUNCATED, 0, len(source.log)))
    start = source.start
    epoch = epoch_at(source, start) if start < len(source.log) else source.epoch
    return _moved(world, state, slot, Lineage(start), (RECORDS_LOST, at if epoch == claim else 0, start))


def _moved(world: World, state: State, slot: int, lineage: Lineage, incident: Incident) -> State:
    noted = state._replace(incidents=state.incidents | {incident})
    has_diverged = incident[0] == SOURCE_TRUNCATED
    return with_start(world, noted, slot, state.attempts[slot - 1], lineage, has_diverged=has_diverged)


# target


@step("A{0} takes an acknowledgement")
def acknowledge(world: World, state: State, slot: int) -> State:
    attempt = state.attempts[slot - 1]
    batch, base = attempt.sent[0]
    incidents = state.incidents
    if world.rules.checks_base_offsets:
        if base < attempt.expected:
            lost = state._replace(incidents=incidents | {(TARGET_LOST, 0, 0)})
            return with_attempt(lost, slot, restarted(attempt))
        incidents = incidents.union(_between(state.target, attempt.expected, base, attempt.writer))
        if _has_successor(state.target, attempt.expected, base, attempt.writer):
            late = {(DOUBLED, offset_of(record), offset_of(record) + 1) for record in batch.records}
            return with_attempt(state, slot, Attempt(DEAD))._replace(incidents=incidents | late)
    end = base + len(batch.records)
    position = Position(batch.writer, batch.records[-1], batch.last, end, attempt.leader)
    after = attempt._replace(expected=end, acked=position, is_stored=False, sent=attempt.sent[1:])
    return with_attempt(state, slot, after)._replace(incidents=incidents)


def _between(target: Target, begin: int, end: int, writer: int) -> Iterator[Incident]:
    """What stands where the attempt expected its own."""
    if begin < min(target.start, end):
        yield UNCERTAIN, 0, EVERYTHING
    for entry in target.log[max(begin, target.start) : end]:
        if not entry.writer:
            yield FOREIGN, 0, 0
        elif is_data(entry) and entry.writer < writer:
            yield DOUBLED, offset_of(entry.record), offset_of(entry.record) + 1


def _has_successor(target: Target, begin: int, end: int, writer: int) -> bool:
    """Only a leader that had forgotten the producer takes a batch behind its successor's marker."""
    return any(entry.writer > writer for entry in target.log[max(begin, target.start) : end])


@step("A{0} ends, fenced")
def end_fenced(world: World, state: State, slot: int) -> State:
    return with_attempt(state, slot, Attempt(DEAD))


@step("A{0} reads back after a refused sequence")
def read_back_again(world: World, state: State, slot: int) -> State:
    return with_attempt(state, slot, restarted(state.attempts[slot - 1]))


@step("A{0} reads back after an unclear outcome")
def give_up_waiting(world: World, state: State, slot: int, is_under_way: int) -> State:
    return with_attempt(_resent(state, is_under_way), slot, restarted(state.attempts[slot - 1]))


@step("A{0} sends again what is not answered")
def resend(world: World, state: State, slot: int, is_under_way: int) -> State:
    """On a new connection; what is on its way on the old one may arrive before, between or after."""
    attempt = state.attempts[slot - 1]
    connection = attempt.connection + 1
    first = next(at for at, sent in enumerate(attempt.sent) if sent.answer == NO_ANSWER)
    again = [sent.batch for sent in attempt.sent[first:]]
    sent = (*attempt.sent[:first], *(Sent(batch, NO_ANSWER) for batch in again))
    network = (*state.network, *(Request(connection, batch) for batch in again))
    after = with_attempt(state, slot, attempt._replace(sent=sent, connection=connection))
    return _resent(after, is_under_way)._replace(network=network)


def _resent(state: State, is_under_way: int) -> State:
    faults = state.faults
    return state._replace(faults=faults._replace(resend=faults.resend - is_under_way))


@step("A{0} finds a new leader of the target")
def check_leader(world: World, state: State, slot: int) -> State:
    """What was sent is only sent again if the last acknowledged record, or the marker, is there still."""
    attempt, target = state.attempts[slot - 1], state.target
    connection = attempt.connection + 1
    sent = tuple(Sent(batch, NO_ANSWER) for batch, _ in attempt.sent)
    connected = attempt._replace(leader=target.leader, connection=connection, sent=sent)
    if not world.rules.checks_new_leader:
        return with_attempt(state, slot, connected)
    at = attempt.expected - 1
    if at < target.start or at >= target.high_watermark or not _is_own(attempt, target.log[at]):
        return with_attempt(state, slot, restarted(attempt))
    if _has_successor(target, at + 1, target.high_watermark, attempt.writer):
        return with_attempt(state, slot, Attempt(DEAD))
    return with_attempt(state, slot, connected)


def _is_own(attempt: Attempt, entry: Entry) -> bool:
    if attempt.acked is None:
        return entry == Entry(attempt.writer, attempt.marker_leader)
    return (entry.writer, entry.sequence) == (attempt.writer, attempt.acked.sequence)


@step("A{0} stores its position")
def store_position(world: World, state: State, slot: int) -> State:
    """The store fences nobody: a frozen attempt may do this at any time."""
    attempt = state.attempts[slot - 1]
    after = with_attempt(state, slot, attempt._replace(is_stored=True))
    return after._replace(position=attempt.acked)


@step("A{0} finishes")
def finish(world: World, state: State, slot: int) -> State:
    """Everything is copied and acknowledged; a last look at what others wrote behind it."""
    attempt, target = state.attempts[slot - 1], state.target
    incidents = state.incidents
    if world.rules.checks_base_offsets:
        if _has_successor(target, attempt.expected, target.high_watermark, attempt.writer):
            return with_attempt(state, slot, Attempt(DEAD))
        incidents = incidents.union(_between(target, attempt.expected, target.high_watermark, attempt.writer))
    after = with_attempt(state, slot, Attempt(DONE, attempt.writer, lineage=attempt.lineage))
    position = attempt.acked if attempt.acked is not None else state.position
    return after._replace(position=position, incidents=incidents)


# a mutant


@step("A{0} stores a run too late")
def store_late_run(world: World, state: State, slot: int) -> State:
    attempt = state.attempts[slot - 1]
    first, *others = attempt.unstored
    after = with_attempt(state, slot, attempt._replace(unstored=tuple(others)))
    return after._replace(runs=stored(state.runs, first))
