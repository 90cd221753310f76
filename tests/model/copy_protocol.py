"""The resume and copy protocol as a state space: which states follow a state.

Actors are up to three attempts (`resuming.py`, `copying.py`), the coordinator, the network and faults
(`world.py`). Each step is atomic; an actor that makes no step is frozen.
"""

from collections.abc import Iterable, Iterator

from tests.model.copying import copying_moves
from tests.model.resuming import resuming_moves
from tests.model.rules import DESIGNED, USUAL, Rules, Setting
from tests.model.state import (
    COPY,
    DEAD,
    DONE,
    FENCED,
    IDLE,
    Attempt,
    Coordinator,
    Faults,
    Request,
    Source,
    State,
    Target,
)
from tests.model.steps import Move, World, text_of
from tests.model.target_log import judged
from tests.model.world import environment_moves, fault_moves

FIRST_PRODUCER = 100


class CopyProtocol:
    """Pure: it keeps nothing but what does not change."""

    def __init__(self, rules: Rules = DESIGNED, setting: Setting = USUAL) -> None:
        self.world = World(rules, setting)

    def successors(self, state: State) -> Iterable[tuple[str, State]]:
        for move in (*self.moves(state), *self.faults(state)):
            yield text_of(move), self.apply(state, move)

    def moves(self, state: State) -> Iterator[Move]:
        """What happens without faults."""
        yield from environment_moves(state)
        for slot, attempt in enumerate(state.attempts, 1):
            if attempt.phase == COPY:
                yield from copying_moves(self.world, state, slot, attempt)
            elif attempt.phase not in (IDLE, DONE, DEAD):
                yield from resuming_moves(self.world, state, slot, attempt)

    def faults(self, state: State) -> Iterator[Move]:
        return fault_moves(self.world, state)

    def apply(self, state: State, move: Move) -> State:
        function, arguments = move
        return canonical(function(self.world, state, *arguments))


def first_state(faults: Faults, *, records: int, attempts: int) -> State:
    return State(
        source=Source((0,) * records),
        target=Target(),
        coordinator=Coordinator(FIRST_PRODUCER),
        attempts=(Attempt(),) * attempts,
        faults=faults,
    )


def canonical(state: State) -> State:
    """Without requests that are certain to change nothing, and that nobody waits for."""
    if state.network and not state.faults.forget:
        waiting = {attempt.connection for attempt in state.attempts if attempt.phase == COPY}
        network = tuple(request for request in state.network if not _is_void(state, request, waiting))
        if len(network) != len(state.network):
            return state._replace(network=network)
    return state


def _is_void(state: State, request: Request, waiting: set[int]) -> bool:
    """A fence stays until an election, and that loses the request."""
    return request.connection not in waiting and judged(state.target, request.batch) == FENCED
