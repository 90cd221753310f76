"""The end of every exploration: one attempt goes on without faults until it has copied everything."""

import random
from typing import Final

from tests.model.state import DEAD, DONE, IDLE, INIT, Attempt, Faults, State
from tests.model.world import CONNECTIONS

STEPS_TO_END_MAX: Final = 400
ALONE: Final = "no more faults; A{} goes on alone"
FRESH: Final = "no more faults; A{} begins, all others are dead"


def occurred(allowed: Faults, state: State) -> Faults:
    """The faults that have happened: from here on no others are allowed."""
    return Faults(*(before - left for before, left in zip(allowed, state.faults, strict=True)))


def calmed(state: State, rng: random.Random) -> tuple[str, State]:
    """The newest attempt goes on, or a fresh one takes over."""
    slot = sum(attempt.phase != IDLE for attempt in state.attempts)
    is_over = not slot or state.attempts[slot - 1].phase in (DONE, DEAD)
    if is_over or rng.random() < 0.5:
        return with_fresh_attempt(state)
    return ALONE.format(slot), alone(state, slot)


def alone(state: State, slot: int) -> State:
    attempts = tuple(
        attempt if at == slot else Attempt(DEAD) for at, attempt in enumerate(state.attempts, 1) if at <= slot
    )
    return state._replace(attempts=attempts, faults=Faults())


def with_fresh_attempt(state: State) -> tuple[str, State]:
    slot = len(state.attempts) + 1
    attempts = (*(Attempt(DEAD) for _ in state.attempts), Attempt(INIT, connection=slot * CONNECTIONS))
    return FRESH.format(slot), state._replace(attempts=attempts, faults=Faults())
