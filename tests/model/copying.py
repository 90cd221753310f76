"""The second half of an attempt: fetch, record ends, send, take acknowledgements, store positions, end."""

from collections.abc import Iterator

from tests.model.claiming import paused
from tests.model.incidents import RECORDS_LOST, SOURCE_TRUNCATED, TARGET_LOST
from tests.model.source_log import divergence, is_record
from tests.model.state import (
    CLAIM,
    CLOSED,
    DEAD,
    DONE,
    FENCED,
    NO_ANSWER,
    NOTHING,
    OPEN,
    OUT_OF_ORDER,
    RADIX,
    Acknowledged,
    Batch,
    End,
    Incident,
    Record,
    Request,
    Sent,
    Source,
    State,
    Target,
    Task,
    offset_of,
    recorded,
)
from tests.model.steps import Move, World, spent, step, with_incidents, with_task


def copying_moves(world: World, state: State, slot: int, task: Task) -> Iterator[Move]:
    if task.is_due and not world.rules.writes_ahead:
        yield record_late, (slot,)
    if task.must_store or task.position != state.position:
        yield store_position, (slot,)
    if task.must_store:
        return
    if task.leader != state.target.leader:
        yield find_leader, (slot,)
        return
    if task.doubted != NOTHING:
        yield look_for_entry, (slot,)
    yield from _writing_moves(state, slot, task)
    yield from _reading_moves(world, state, slot, task)
    if state.faults.stop and (not task.sent or not world.rules.closes_in_order):
        yield stop, (slot,)
    if state.faults.renew and not task.sent:
        yield renew, (slot,)


def _writing_moves(state: State, slot: int, task: Task) -> Iterator[Move]:
    if not task.sent:
        return
    first = task.sent[0]
    if any(sent.answer == FENCED for sent in task.sent):
        yield be_fenced, (slot,)
    elif first.answer == OUT_OF_ORDER:
        yield be_refused, (slot,)
    elif first.answer >= 0 and first.answer + len(first.batch.records) <= state.target.high_watermark:
        yield acknowledge, (slot,)
    unclear = next((sent.batch for sent in task.sent if sent.answer == NO_ANSWER), None)
    if unclear is None:
        return
    is_under_way = any(request.batch == unclear for request in state.network)
    if not is_under_way or state.faults.resend:
        yield resend, (slot, int(is_under_way))


def _reading_moves(world: World, state: State, slot: int, task: Task) -> Iterator[Move]:
    """An incident lets what was sent be acknowledged first."""
    source, at = state.source, task.offset
    if divergence(source, at, task.epoch) is not None:
        if not task.sent:
            yield follow_divergence, (slot,)
    elif not source.start <= at <= len(source.log):
        if not task.sent:
            yield skip_lost, (slot,)
    else:
        offset = _next_record(source, at)
        if offset == len(source.log):
            if offset > at:
                yield skip_gap, (slot,)
            elif (
                not task.sent
                and task.doubted == NOTHING
                and not (task.is_due and not world.rules.writes_ahead)
            ):
                yield finish, (slot,)
        elif _has_room(world, task):
            for count in range(1, _batch_max(world, source, offset) + 1):
                yield copy, (slot, count)


def _has_room(world: World, task: Task) -> bool:
    """One at a time until the first acknowledgement."""
    window = world.setting.window if task.acknowledged.sequence else 1
    return len(task.sent) < window and all(sent.answer >= NO_ANSWER for sent in task.sent)


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


@step("T{0} copies a batch of {1}")
def copy(world: World, state: State, slot: int, count: int) -> State:
    """Fetch, record the end if it can't be counted, and send.

    A crash between these steps is a crash after all of them whose request is lost.
    """
    source, task = state.source, state.tasks[slot - 1]
    offset = _next_record(source, task.offset)
    position = task.acknowledged._replace(epoch=source.epoch)
    if not task.sent:  # a gap before it needs no acknowledgement
        position = position._replace(offset=offset)
    end = End(task.taken, offset, source.epoch)
    task = task._replace(epoch=source.epoch, position=position)
    if task.ends[-1].after(task.taken) != end:
        kept = [known for known in task.ends if known.records < end.records]
        task = task._replace(ends=(*kept, end), is_due=True)
    if task.is_due and world.rules.writes_ahead:
        task, state = _with_record(state, slot, task)
    records = tuple(source.log[offset] * RADIX + at for at in range(offset, offset + count))
    batch = Batch(task.writer, task.taken, records)
    sent = (*task.sent, Sent(batch, NO_ANSWER))
    copied = task._replace(offset=offset + count, taken=task.taken + count, sent=sent)
    network = (*state.network, Request(task.connection, batch))
    return with_task(state, slot, copied, network=network)


def _with_record(state: State, slot: int, task: Task) -> tuple[Task, State]:
    """Ends before the one that counts for what is acknowledged are not needed."""
    position = task.acknowledged
    first = max(at for at, end in enumerate(task.ends) if end.records <= position.sequence)
    task = task._replace(ends=task.ends[first:], is_due=False)
    acknowledged = Acknowledged(position.sequence, position.target_end)
    record = Record(task.writer, OPEN, task.begin, task.ends, acknowledged)
    return task, with_task(state, slot, task, records=recorded(state.records, record))


@step("T{0} reads past a gap")
def skip_gap(world: World, state: State, slot: int) -> State:
    task, source = state.tasks[slot - 1], state.source
    task = task._replace(offset=len(source.log), epoch=source.epoch)
    if not task.sent:
        position = task.acknowledged._replace(offset=task.offset, epoch=task.epoch)
        task = task._replace(position=position)
    return with_task(state, slot, task)


@step("T{0} learns that the source was truncated")
def follow_divergence(world: World, state: State, slot: int) -> State:
    """The answer says where the epoch ends that was read. A leader that never saw it names the one before."""
    task, source = state.tasks[slot - 1], state.source
    found = divergence(source, task.offset, task.epoch)
    assert found is not None
    epoch, end = found
    if end >= task.offset:
        return _moved(world, state, slot, End(task.taken, task.offset, epoch), ())
    incident = SOURCE_TRUNCATED, end, task.offset
    return _moved(world, state, slot, End(task.taken, end, epoch), (incident,))


@step("T{0} learns that its offset is out of range")
def skip_lost(world: World, state: State, slot: int) -> State:
    task, start = state.tasks[slot - 1], state.source.start
    incident = RECORDS_LOST, task.offset, start
    return _moved(world, state, slot, End(task.taken, start, -1), (incident,))


def _moved(world: World, state: State, slot: int, end: End, incidents: tuple[Incident, ...]) -> State:
    """Continue in place. That is stored before anything is sent, and recorded with the next batch."""
    task = state.tasks[slot - 1]
    position = task.acknowledged._replace(offset=end.offset, epoch=end.epoch)
    follows = task.ends[-1].after(end.records) == end
    ends = task.ends if follows else (*(one for one in task.ends if one.records < end.records), end)
    moved = task._replace(
        offset=end.offset,
        epoch=end.epoch,
        ends=ends,
        is_due=task.is_due or not follows,
        position=position,
        must_store=world.rules.stores_starts,
    )
    return with_task(state, slot, moved, incidents=with_incidents(state, incidents))


# target


@step("T{0} takes an acknowledgement")
def acknowledge(world: World, state: State, slot: int) -> State:
    task = state.tasks[slot - 1]
    batch, base = task.sent[0]
    return _acknowledged(world, state, slot, task, batch, base)


def _acknowledged(world: World, state: State, slot: int, task: Task, batch: Batch, base: int) -> State:
    rules, before = world.rules, task.acknowledged
    left, end = task.sent[1:], base + len(batch.records)
    following = offset_of(batch.records[-1]) + 1 if left else task.offset
    is_lost = base < before.target_end and rules.checks_base_offsets
    incidents: tuple[Incident, ...] = ((TARGET_LOST, 0, following),) if is_lost else ()
    position = before._replace(sequence=batch.last + 1, offset=following, epoch=task.epoch, target_end=end)
    acknowledged = task._replace(position=position, sent=left)
    return with_task(state, slot, acknowledged, incidents=with_incidents(state, incidents))


@step("T{0} is fenced")
def be_fenced(world: World, state: State, slot: int) -> State:
    return with_task(state, slot, paused(state.tasks[slot - 1], forgets=True))


@step("T{0} has a sequence refused")
def be_refused(world: World, state: State, slot: int) -> State:
    """Another attempt of the task looks up what arrived."""
    task = state.tasks[slot - 1]
    return with_task(state, slot, paused(task))


@step("T{0} sends again what is not answered")
def resend(world: World, state: State, slot: int, is_under_way: int) -> State:
    """Acknowledge what the log holds, and send the rest on a new connection.

    What is on its way on the old one may arrive before, between or after.
    """
    faults = state.faults
    state = state._replace(faults=faults._replace(resend=faults.resend - is_under_way))
    task = state.tasks[slot - 1]
    while task.sent:
        base = _base_of(state.target, task.sent[0].batch, task.acknowledged.target_end)
        if base is None:
            break
        state = _acknowledged(world, state, slot, task, task.sent[0].batch, base)
        task = state.tasks[slot - 1]
    connection = task.connection + 1
    sent = tuple(Sent(batch, NO_ANSWER) for batch, _ in task.sent)
    network = (*state.network, *(Request(connection, batch) for batch, _ in sent))
    return with_task(state, slot, task._replace(sent=sent, connection=connection), network=network)


def _base_of(target: Target, batch: Batch, begin: int) -> int | None:
    for at in range(max(begin, target.start), target.high_watermark):
        entry = target.log[at]
        if (entry.writer, entry.sequence) == (batch.writer, batch.sequence):
            return at
    return None


@step("T{0} finds a new leader of the target")
def find_leader(world: World, state: State, slot: int) -> State:
    """Look for what the leader before has not acknowledged, and send it again in order."""
    task = state.tasks[slot - 1]
    sent = tuple(Sent(batch, NO_ANSWER) for batch, _ in task.sent)
    found = task._replace(leader=state.target.leader, connection=task.connection + 1, sent=sent)
    if world.rules.looks_on_new_leaders:
        found = found._replace(doubted=_last_entry(task))
    return resend(world, with_task(state, slot, found), slot, 0)


@step("T{0} looks for its last entry")
def look_for_entry(world: World, state: State, slot: int) -> State:
    """Begin another attempt if the entry is missing, which fences this one, too."""
    task, target = state.tasks[slot - 1], state.target
    at, task = task.doubted, task._replace(doubted=NOTHING)
    if at >= target.high_watermark:
        return with_task(state, slot, paused(task))
    if at < target.start or target.log[at].writer == task.writer:
        return with_task(state, slot, task)
    lost = ((TARGET_LOST, 0, task.acknowledged.offset),)
    return with_task(state, slot, paused(task), incidents=with_incidents(state, lost))


def _last_entry(task: Task) -> int:
    """Return the last acknowledged record, or the marker before."""
    position = task.acknowledged
    return position.target_end - 1 if position.sequence else task.marker


# positions and ends


@step("T{0} stores its position")
def store_position(world: World, state: State, slot: int) -> State:
    """The store fences nobody: a frozen task may do this at any time."""
    task = state.tasks[slot - 1]
    return with_task(state, slot, task._replace(must_store=False), position=task.position)


@step("T{0} stops in order")
def stop(world: World, state: State, slot: int) -> State:
    """Store the position, and close the attempt."""
    task = state.tasks[slot - 1]
    position = task.acknowledged._replace(epoch=task.epoch)
    end = End(position.sequence, position.offset, position.epoch)
    closed = Record(task.writer, CLOSED, position.target_end, (end,))
    after = with_task(state, slot, Task(DEAD), position=position, records=recorded(state.records, closed))
    return after._replace(faults=spent(state.faults, "stop"))


@step("T{0} begins another attempt")
def renew(world: World, state: State, slot: int) -> State:
    """Before the coordinator forgets the id. What the one before has sent is all acknowledged."""
    task = state.tasks[slot - 1]
    renewed = Task(
        CLAIM,
        task.writer,
        task.writer,
        task.position,
        is_stored=False,
        leader=task.leader,
        connection=task.connection + 1,
    )
    return with_task(state, slot, renewed, faults=spent(state.faults, "renew"))


@step("T{0} finishes")
def finish(world: World, state: State, slot: int) -> State:
    """Everything is copied and acknowledged."""
    task = state.tasks[slot - 1]
    return with_task(state, slot, Task(DONE, task.writer, position=task.position))


# a mutant


@step("T{0} records its ends too late")
def record_late(world: World, state: State, slot: int) -> State:
    return _with_record(state, slot, state.tasks[slot - 1])[1]
