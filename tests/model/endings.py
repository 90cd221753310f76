"""The end of every exploration: one task continues without faults until it has copied everything."""

import random
from typing import Final

from tests.model.state import DEAD, DONE, IDLE, PAUSED, Faults, State, Task
from tests.model.world import CONNECTIONS

STEPS_TO_END_MAX: Final = 400
ALONE: Final = "no more faults; T{} continues alone"
FRESH: Final = "no more faults; T{} begins, all others are dead"


def occurred(allowed: Faults, state: State) -> Faults:
    """The faults that have happened: from here on no others are allowed."""
    return Faults(*(before - left for before, left in zip(allowed, state.faults, strict=True)))


def calmed(state: State, rng: random.Random) -> tuple[str, State]:
    """The newest task continues, or a fresh one takes over."""
    slot = sum(task.phase != IDLE for task in state.tasks)
    is_over = not slot or state.tasks[slot - 1].phase in (DONE, DEAD)
    if is_over or rng.random() < 0.5:
        return with_fresh_task(state)
    return ALONE.format(slot), alone(state, slot)


def alone(state: State, slot: int) -> State:
    tasks = tuple(task if at == slot else Task(DEAD) for at, task in enumerate(state.tasks, 1) if at <= slot)
    return state._replace(tasks=tasks, faults=Faults())


def with_fresh_task(state: State) -> tuple[str, State]:
    slot = len(state.tasks) + 1
    tasks = (*(Task(DEAD) for _ in state.tasks), Task(PAUSED, connection=slot * CONNECTIONS))
    return FRESH.format(slot), state._replace(tasks=tasks, faults=Faults())
