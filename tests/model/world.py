"""Everything but the tasks: the network, the coordinator, replication, and faults."""

from collections.abc import Iterator

from tests.model import source_log, target_log
from tests.model.state import (
    CLAIM,
    COPY,
    DEAD,
    DONE,
    EMPTY,
    ENDING,
    IDLE,
    NO_ANSWER,
    NOTHING,
    RADIX,
    Batch,
    Coordinator,
    Sent,
    State,
    Target,
    Task,
)
from tests.model.steps import Move, World, spent, step, with_task

CONNECTIONS: int = 50
"""More than one task opens."""


def environment_moves(state: State) -> list[Move]:
    """Return the moves of brokers and network without a fault."""
    coordinator, target = state.coordinator, state.target
    moves: list[Move] = []
    if coordinator.status == ENDING:
        if coordinator.offset == NOTHING:
            moves.append((write_marker, ()))
        elif coordinator.offset < target.high_watermark:
            moves.append((complete_transaction, ()))
    if target.high_watermark < len(target.log):
        moves.append((replicate, ()))
    if state.network:
        moves += [(deliver, (at,)) for at in _first_of_connections(state)]
    return moves


def fault_moves(world: World, state: State) -> Iterator[Move]:
    yield from _process_moves(state)
    if state.network:
        yield from _network_moves(state)
    yield from _source_moves(state)
    yield from _target_moves(state)


def _first_of_connections(state: State) -> Iterator[int]:
    seen = set()
    for at, request in enumerate(state.network):
        if request.connection not in seen:
            seen.add(request.connection)
            yield at


# coordinator and replication


@step("the coordinator's marker reaches the target")
def write_marker(world: World, state: State) -> State:
    coordinator, target = state.coordinator, state.target
    after = target_log.marked(target, coordinator.marker)
    if after is None:
        return state._replace(coordinator=coordinator._replace(status=EMPTY))
    return state._replace(target=after, coordinator=coordinator._replace(offset=len(target.log)))


@step("the transaction is complete")
def complete_transaction(world: World, state: State) -> State:
    return state._replace(coordinator=state.coordinator._replace(status=EMPTY))


@step("the target's followers catch up")
def replicate(world: World, state: State) -> State:
    return state._replace(target=target_log.replicated(state.target))


# network


def _network_moves(state: State) -> Iterator[Move]:
    faults = state.faults
    for at in _first_of_connections(state):
        if faults.drop:
            yield drop, (at,)
        if faults.silence:
            yield silence, (at,)


@step("request {0} arrives")
def deliver(world: World, state: State, at: int) -> State:
    request = state.network[at]
    after, answer = _arrived(state, request.batch)
    return _answered(_without(after, at), request.connection, request.batch, answer)


@step("request {0} arrives, its answer is lost")
def silence(world: World, state: State, at: int) -> State:
    after, _ = _arrived(state, state.network[at].batch)
    return _without(after, at)._replace(faults=spent(state.faults, "silence"))


@step("request {0} is lost or refused")
def drop(world: World, state: State, at: int) -> State:
    return _without(state, at)._replace(faults=spent(state.faults, "drop"))


def _arrived(state: State, batch: Batch) -> tuple[State, int]:
    target, answer = target_log.produced(state.target, batch)
    return state._replace(target=target), answer


def _without(state: State, at: int) -> State:
    return state._replace(network=state.network[:at] + state.network[at + 1 :])


def _answered(state: State, connection: int, batch: Batch, answer: int) -> State:
    """Nobody hears the answer on a connection that was given up."""
    for slot, task in enumerate(state.tasks, 1):
        if task.phase == COPY and task.connection == connection:
            sent = tuple(
                Sent(batch, answer) if other.batch == batch and other.answer == NO_ANSWER else other
                for other in task.sent
            )
            return with_task(state, slot, task._replace(sent=sent))
    return state


# processes


def _process_moves(state: State) -> Iterator[Move]:
    faults = state.faults
    for slot, task in enumerate(state.tasks, 1):
        if task.phase == IDLE:
            yield begin, (slot,)
            break
        if faults.crash and task.phase not in (DONE, DEAD):
            yield crash, (slot,)
            if any(request.connection == task.connection for request in state.network):
                yield crash_unsent, (slot,)
    if faults.expire_id and state.coordinator.status == EMPTY:
        yield expire_id, ()


@step("T{0} begins")
def begin(world: World, state: State, slot: int) -> State:
    """Whether the one before is dead, frozen or well is not known."""
    task = Task(CLAIM, position=state.position, connection=slot * CONNECTIONS)
    return with_task(state, slot, task)


@step("T{0} begins again")
def begin_again(world: World, state: State, slot: int) -> State:
    """Begin again with the known position, or with the stored one if another attempt may have moved it."""
    task, faults = state.tasks[slot - 1], state.faults
    position = state.position if task.is_stored else task.position
    left = faults._replace(again=max(faults.again - 1, 0))
    again = task._replace(phase=CLAIM, position=position)
    return with_task(state, slot, again, faults=left)


@step("T{0} crashes")
def crash(world: World, state: State, slot: int) -> State:
    return with_task(state, slot, Task(DEAD), faults=spent(state.faults, "crash"))


@step("T{0} crashes, and what it has sent is lost")
def crash_unsent(world: World, state: State, slot: int) -> State:
    connection = state.tasks[slot - 1].connection
    network = tuple(request for request in state.network if request.connection != connection)
    return crash(world, state, slot)._replace(network=network)


@step("the transactional id expires")
def expire_id(world: World, state: State) -> State:
    coordinator = Coordinator((state.coordinator.writer // RADIX + 1) * RADIX)
    return state._replace(coordinator=coordinator, faults=spent(state.faults, "expire_id"))


# source


def _source_moves(state: State) -> Iterator[Move]:
    source, faults = state.source, state.faults
    if faults.append:
        yield source_append, ()
    if faults.control:
        yield source_control, ()
    if faults.elect:
        yield source_elect, ()
    if faults.compact:
        yield from ((source_compact, (offset,)) for offset in source_log.offsets(source))
    if faults.expire:
        yield from ((source_expire, (start,)) for start in range(source.start + 1, len(source.log) + 1))
    if faults.cut:
        yield from ((source_cut, (end,)) for end in range(source.start, len(source.log)))


@step("a record is appended to the source")
def source_append(world: World, state: State) -> State:
    return state._replace(source=source_log.appended(state.source), faults=spent(state.faults, "append"))


@step("a control batch is appended to the source")
def source_control(world: World, state: State) -> State:
    return state._replace(
        source=source_log.control_appended(state.source), faults=spent(state.faults, "control")
    )


@step("the source elects a leader")
def source_elect(world: World, state: State) -> State:
    return state._replace(source=source_log.elected(state.source), faults=spent(state.faults, "elect"))


@step("the source compacts offset {0} away")
def source_compact(world: World, state: State, offset: int) -> State:
    source = source_log.compacted(state.source, offset)
    return state._replace(source=source, faults=spent(state.faults, "compact"))


@step("the source's log starts at {0}")
def source_expire(world: World, state: State, start: int) -> State:
    return state._replace(
        source=source_log.expired(state.source, start), faults=spent(state.faults, "expire")
    )


@step("the source elects an unclean leader whose log ends at {0}")
def source_cut(world: World, state: State, end: int) -> State:
    return state._replace(source=source_log.cut(state.source, end), faults=spent(state.faults, "cut"))


# target


def _target_moves(state: State) -> Iterator[Move]:
    target, faults = state.target, state.faults
    if faults.foreign:
        yield target_foreign, ()
    if faults.forget and target.producers:
        yield target_forget, ()
    if faults.restamp:
        yield target_restamp, ()
    if faults.mark_again and state.coordinator.marker != NOTHING:
        yield target_mark_again, ()
    if faults.retain:
        yield from ((target_retain, (start,)) for start in range(target.start + 1, target.high_watermark + 1))
    if faults.fail_over:
        yield from ((target_fail_over, (end,)) for end in {target.high_watermark, len(target.log)})
    if faults.truncate:
        yield from ((target_truncate, (end,)) for end in target_log.ends_of_batches(target))


@step("a foreign record is appended to the target")
def target_foreign(world: World, state: State) -> State:
    target = target_log.foreign_appended(state.target)
    return state._replace(target=target, faults=spent(state.faults, "foreign"))


@step("the target's leader forgets the producers")
def target_forget(world: World, state: State) -> State:
    return state._replace(target=target_log.forgotten(state.target), faults=spent(state.faults, "forget"))


@step("the target stamps append times from now on")
def target_restamp(world: World, state: State) -> State:
    return state._replace(target=target_log.stamped(state.target), faults=spent(state.faults, "restamp"))


@step("the coordinator writes its last marker again")
def target_mark_again(world: World, state: State) -> State:
    """Write the coordinator's last marker again; it had no answer."""
    state = state._replace(faults=spent(state.faults, "mark_again"))
    target = target_log.marked(state.target, state.coordinator.marker)
    return state if target is None else state._replace(target=target)


@step("the target's log starts at {0}")
def target_retain(world: World, state: State, start: int) -> State:
    return state._replace(
        target=target_log.expired(state.target, start), faults=spent(state.faults, "retain")
    )


@step("the target elects a leader whose log ends at {0}")
def target_fail_over(world: World, state: State, end: int) -> State:
    after = _elected(state, target_log.elected(state.target, end))
    return after._replace(faults=spent(state.faults, "fail_over"))


@step("the target elects an unclean leader whose log ends at {0}")
def target_truncate(world: World, state: State, end: int) -> State:
    after = _elected(state, target_log.elected(state.target, end))
    return after._replace(faults=spent(state.faults, "truncate"))


def _elected(state: State, target: Target) -> State:
    """Requests to the leader before are lost; the coordinator writes a marker again that is gone."""
    coordinator = state.coordinator
    if coordinator.status == ENDING and coordinator.offset >= len(target.log):
        coordinator = coordinator._replace(offset=NOTHING)
    return state._replace(target=target, coordinator=coordinator, network=())
