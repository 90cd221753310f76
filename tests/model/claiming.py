"""The first half of an attempt: its claim, its marker, the records of those before, and its start."""

from tests.model.incidents import NOT_DUE, TARGET_LOST
from tests.model.look_up import Start, is_newest, last_of, matched, start_of
from tests.model.rules import Fence, Find, Rules, Setting
from tests.model.state import (
    ADD,
    AWAIT,
    BEGIN,
    CLAIM,
    CLOSED,
    COPY,
    EMPTY,
    END,
    ENDING,
    LOOK,
    NOTHING,
    ONGOING,
    OPEN,
    PAUSED,
    POSITION,
    RADIX,
    READ,
    READ_AGAIN,
    RECORD,
    STORE,
    Coordinator,
    End,
    Position,
    Record,
    State,
    Target,
    Task,
    recorded,
)
from tests.model.steps import Move, World, step, with_incidents, with_task


def paused(task: Task, *, forgets: bool = False) -> Task:
    """Give up what was sent. The task `forgets` its position where another task may have a newer one."""
    if forgets:
        return Task(PAUSED, task.writer, connection=task.connection + 1)
    return Task(
        PAUSED,
        task.writer,
        task.settled,
        task.position,
        is_stored=task.is_stored,
        leader=task.leader,
        connection=task.connection + 1,
    )


def claiming_moves(world: World, state: State, slot: int, task: Task) -> tuple[Move, ...]:
    """Return at most one move: all of this half goes in one order."""
    phase = task.phase
    if phase in _ONLY_MOVE:
        return ((_ONLY_MOVE[phase], (slot,)),)
    if phase == CLAIM and state.coordinator.status != ENDING:
        return ((claim, (slot,)),)
    if phase == ADD and _may_add(world, state, task):
        return ((add_partition, (slot,)),)
    if phase == AWAIT:
        return _waiting_moves(world, state, slot, task)
    return ()


def _waiting_moves(world: World, state: State, slot: int, task: Task) -> tuple[Move, ...]:
    coordinator = state.coordinator
    if _marker_of(state.target, task) != NOTHING or not world.rules.awaits_marker:
        return ((see_marker, (slot,)),)
    if coordinator.status != ENDING or coordinator.marker != task.writer:
        return ((miss_marker, (slot,)),)
    return ()


def _may_add(world: World, state: State, task: Task) -> bool:
    """The coordinator refuses an older attempt at once, and lets the newest wait while a transaction ends."""
    coordinator = state.coordinator
    if coordinator.writer != task.writer:
        return True
    return coordinator.status == EMPTY and _may_fence(world, state, task)


def _may_fence(world: World, state: State, task: Task) -> bool:
    """A marker does not reach attempts of another producer id: those are waited for.

    The model knows them. A real attempt waits for 30 s, and one that is frozen for longer may continue.
    """
    live = (other.writer for other in state.tasks if RECORD <= other.phase <= COPY)
    sent = (request.batch.writer for request in state.network)
    is_new = any(writer // RADIX < task.writer // RADIX for writer in (*live, *sent))
    return not (is_new and world.rules.waits_for_old_id)


def next_writer(setting: Setting, writer: int) -> int:
    """Another producer id follows the last epoch."""
    return writer + 1 if writer % RADIX < setting.epoch_max else (writer // RADIX + 1) * RADIX + 1


@step("T{0} claims an epoch")
def claim(world: World, state: State, slot: int) -> State:
    task, coordinator = state.tasks[slot - 1], state.coordinator
    if not world.rules.claims:
        writer = (coordinator.writer // RADIX + 1) * RADIX + 1
        begun = task._replace(phase=POSITION, writer=writer)
        return with_task(state, slot, begun, coordinator=coordinator._replace(writer=writer))
    if coordinator.status == ONGOING:
        return state._replace(coordinator=aborted(coordinator))
    writer = next_writer(world.setting, coordinator.writer)
    phase = RECORD if world.rules.records_claims else READ
    claimed = task._replace(phase=phase, writer=writer)
    return with_task(state, slot, claimed, coordinator=coordinator._replace(writer=writer))


def aborted(coordinator: Coordinator) -> Coordinator:
    """InitProducerId over an open transaction: a marker with an epoch that no attempt gets."""
    fence = coordinator.writer + 1
    return Coordinator(fence, ENDING, fence)


@step("T{0} records its claim")
def record_claim(world: World, state: State, slot: int) -> State:
    task = state.tasks[slot - 1]
    records = recorded(state.records, Record(task.writer))
    return with_task(state, slot, task._replace(phase=READ), records=records)


@step("T{0} reads the attempts")
def read_records(world: World, state: State, slot: int) -> State:
    """Fence attempts that may write. If there is none, and none is newer, the attempt continues."""
    task = state.tasks[slot - 1]
    leader = task.leader if task.settled else state.target.leader
    task = task._replace(known=state.records, leader=leader)
    before = [record for record in state.records if record.writer < task.writer]
    may_write = any(record.stage != CLOSED and record.writer != task.settled for record in before)
    if may_write and world.rules.fence is Fence.BEFORE_LOOKING:
        return with_task(state, slot, task._replace(phase=ADD, marker=state.target.high_watermark))
    return with_task(state, slot, _checked(world.rules, state, task))


def _checked(rules: Rules, state: State, task: Task) -> Task:
    """Give way to newer attempts; else read the position if another may have stored a newer one."""
    known = state.records if rules.reads_again else task.known
    if rules.gives_way and any(record.writer > task.writer for record in known):
        return paused(task)
    last = last_of(known, task.writer)
    is_known = last is None or is_newest(task.position, last, is_stored=task.is_stored)
    is_early = is_known or not rules.reads_position_late
    return task._replace(phase=LOOK if is_early else POSITION, known=known)


@step("T{0} adds the partition to a transaction")
def add_partition(world: World, state: State, slot: int) -> State:
    task = state.tasks[slot - 1]
    if state.coordinator.writer != task.writer:
        return with_task(state, slot, paused(task))
    coordinator = state.coordinator._replace(status=ONGOING)
    return with_task(state, slot, task._replace(phase=END), coordinator=coordinator)


@step("T{0} ends the transaction")
def end_transaction(world: World, state: State, slot: int) -> State:
    task = state.tasks[slot - 1]
    if state.coordinator.writer != task.writer:
        return with_task(state, slot, paused(task))
    coordinator = Coordinator(task.writer, ENDING, task.writer)
    return with_task(state, slot, task._replace(phase=AWAIT), coordinator=coordinator)


@step("T{0} sees its marker")
def see_marker(world: World, state: State, slot: int) -> State:
    task = state.tasks[slot - 1]
    phase = COPY if world.rules.fence is Fence.AFTER_LOOKING else READ_AGAIN
    return with_task(state, slot, task._replace(phase=phase, marker=_marker_of(state.target, task)))


@step("T{0} finds no marker of its own")
def miss_marker(world: World, state: State, slot: int) -> State:
    """The log has lost it."""
    return with_task(state, slot, paused(state.tasks[slot - 1]))


def _marker_of(target: Target, task: Task) -> int:
    """Consumers see what is below the high watermark."""
    for offset in range(max(task.marker, target.start), target.high_watermark):
        entry = target.log[offset]
        if entry.writer == task.writer and entry.sequence == NOTHING:
            return offset
    return NOTHING


@step("T{0} reads the attempts again")
def read_again(world: World, state: State, slot: int) -> State:
    return with_task(state, slot, _checked(world.rules, state, state.tasks[slot - 1]))


@step("T{0} reads the position")
def read_position(world: World, state: State, slot: int) -> State:
    """Read the position, and drop what was found before: another attempt came between."""
    task = state.tasks[slot - 1]._replace(phase=LOOK, position=state.position, is_stored=True, settled=0)
    return with_task(state, slot, task)


@step("T{0} looks up where the attempt before ended")
def look_up(world: World, state: State, slot: int) -> State:
    """Look up the attempt before, unless it is the task's settled attempt."""
    task, end = state.tasks[slot - 1], state.target.high_watermark
    position, last = task.position, last_of(task.known, task.writer)
    if end <= task.marker and world.rules.proves_marker:
        return miss_marker(world, state, slot)
    begun = task._replace(phase=BEGIN, begin=end)
    if position is not None and last is not None and task.settled == last.writer:
        begun = task._replace(phase=BEGIN, begin=min(position.target_end, end))
    start = _start(world.rules, state, task, last)
    begun = begun._replace(offset=start.offset, epoch=min(start.epoch, state.source.epoch))
    return with_task(state, slot, begun, incidents=with_incidents(state, start.incidents))


def _start(rules: Rules, state: State, task: Task, last: Record | None) -> Start:
    position, end = task.position, state.target.high_watermark
    if not rules.claims and position is not None:
        if rules.find is Find.BY_CONTENT:
            return matched(state.source, state.target, end, position)
        lost = ((TARGET_LOST, 0, position.offset),) if end < position.target_end else ()
        return Start(position.offset, position.epoch, lost)
    if position is None or last is None:
        first = state.source.start
        return Start(first, NOTHING, ((NOT_DUE, 0, first),) if first else ())
    if task.settled == last.writer:
        lost = ((TARGET_LOST, 0, position.offset),) if end < position.target_end else ()
        return Start(position.offset, position.epoch, lost)
    if rules.find is Find.BY_CONTENT:
        return matched(state.source, state.target, end, position)
    return start_of(rules, state.target, end, task, last)


@step("T{0} records that it begins")
def record_begin(world: World, state: State, slot: int) -> State:
    """Then those before it are over."""
    task = state.tasks[slot - 1]
    ends = (End(0, task.offset, task.epoch),)
    own = Record(task.writer, OPEN, task.begin, ends)
    over = {record.writer for record in task.known if record.writer < task.writer}
    records = tuple(record for record in recorded(state.records, own) if record.writer not in over)
    position = Position(task.writer, 0, task.offset, task.epoch, task.begin)
    begun = Task(
        STORE,
        task.writer,
        position=position,
        is_stored=False,
        offset=task.offset,
        epoch=task.epoch,
        begin=task.begin,
        marker=task.marker,
        ends=ends,
        leader=task.leader,
        connection=task.connection,
    )
    target = state.target._replace(begins=state.target.begins | {(task.writer, task.begin)})
    return with_task(state, slot, begun, records=records, target=target)


@step("T{0} stores its start")
def store_start(world: World, state: State, slot: int) -> State:
    rules, task = world.rules, state.tasks[slot - 1]
    phase = ADD if rules.fence is Fence.AFTER_LOOKING else COPY
    position = task.position if rules.stores_starts else state.position
    return with_task(state, slot, task._replace(phase=phase), position=position)


_ONLY_MOVE = {
    RECORD: record_claim,
    READ: read_records,
    END: end_transaction,
    READ_AGAIN: read_again,
    POSITION: read_position,
    LOOK: look_up,
    BEGIN: record_begin,
    STORE: store_start,
}
