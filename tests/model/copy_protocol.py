"""The copy protocol as a state space: which states follow a state.

Actors are up to three tasks (`claiming.py`, `copying.py`), the coordinator, the network and faults
(`world.py`). Each step is atomic; an actor that makes no step is frozen.
"""

from tests.model.claiming import claiming_moves
from tests.model.copying import copying_moves
from tests.model.rules import IMPLEMENTED, USUAL, Rules, Setting
from tests.model.state import (
    COPY,
    DEAD,
    DONE,
    FENCED,
    IDLE,
    PAUSED,
    Coordinator,
    Faults,
    Request,
    Source,
    State,
    Target,
    Task,
)
from tests.model.steps import Move, World
from tests.model.target_log import judged
from tests.model.world import begin_again, environment_moves, fault_moves

FIRST_PRODUCER = 100


class CopyProtocol:
    """Pure: it keeps nothing but what does not change."""

    def __init__(self, rules: Rules = IMPLEMENTED, setting: Setting = USUAL) -> None:
        self.world = World(rules, setting)

    def moves(self, state: State) -> list[Move]:
        """Return the moves that happen without faults."""
        moves = environment_moves(state)
        for slot, task in enumerate(state.tasks, 1):
            phase = task.phase
            if phase == COPY:
                moves += copying_moves(self.world, state, slot, task)
            elif phase == PAUSED:
                if state.faults.again or _is_alone(state):
                    moves.append((begin_again, (slot,)))
            elif IDLE < phase < COPY:
                moves += claiming_moves(self.world, state, slot, task)
        return moves

    def faults(self, state: State) -> list[Move]:
        return list(fault_moves(self.world, state))

    def apply(self, state: State, move: Move) -> State:
        function, arguments = move
        return canonical(function(self.world, state, *arguments))


def first_state(faults: Faults, *, records: int, tasks: int) -> State:
    return State(
        source=Source((0,) * records),
        target=Target(),
        coordinator=Coordinator(FIRST_PRODUCER),
        tasks=(Task(),) * tasks,
        faults=faults,
    )


def _is_alone(state: State) -> bool:
    return sum(task.phase not in (IDLE, DONE, DEAD) for task in state.tasks) == 1


def canonical(state: State) -> State:
    """Leave out requests that are certain to change nothing, and that nobody waits for."""
    if state.network and not state.faults.forget:
        waiting = {task.connection for task in state.tasks if task.phase == COPY}
        network = tuple(request for request in state.network if not _is_void(state, request, waiting))
        if len(network) != len(state.network):
            return state._replace(network=network)
    return state


def _is_void(state: State, request: Request, waiting: set[int]) -> bool:
    """A fence stays until an election, and that loses the request."""
    return request.connection not in waiting and judged(state.target, request.batch) == FENCED
