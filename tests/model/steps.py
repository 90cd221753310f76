"""Steps: functions from a state to the next, with a text for people."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.model.rules import Rules, Setting
from tests.model.state import Faults, Incident, State, Task


class World(NamedTuple):
    """The constants of an exploration: the rules of the protocol and the circumstances."""

    rules: Rules
    setting: Setting


Step = Callable[..., State]
Move = tuple[Step, tuple[int, ...]]
"""A step and its arguments; tasks are numbered from 1."""

_TEXTS: Final[dict[Step, str]] = {}


def step(text: str) -> Callable[[Step], Step]:
    def register(function: Step) -> Step:
        _TEXTS[function] = text
        return function

    return register


def text_of(move: Move) -> str:
    function, arguments = move
    return _TEXTS[function].format(*arguments)


def with_task(state: State, slot: int, task: Task, **changes: Any) -> State:
    """Return the state with this task in the slot, and other changes."""
    tasks = state.tasks
    return state._replace(tasks=(*tasks[: slot - 1], task, *tasks[slot:]), **changes)


def with_incidents(state: State, incidents: tuple[Incident, ...]) -> frozenset[Incident]:
    """Return the state's incidents and these; the same value if there are none, which properties notice."""
    return state.incidents.union(incidents) if incidents else state.incidents


def spent(faults: Faults, name: str) -> Faults:
    return faults._replace(**{name: getattr(faults, name) - 1})
