"""Defines a migration's steps. A step states what holds now, so that a migration can be repeated. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


class StepState(StrEnum):
    DONE = "done"
    WAITING = "waiting"
    """The step waits for users, or for the mirror."""
    TO_DO = "to do"
    """The command does the step itself, once the steps before are done."""
    IMPOSSIBLE = "impossible"
    """Until users change something."""


class Step(NamedTuple):
    """`text` states what was found, or what is to be done."""

    name: str
    state: StepState
    text: str
    is_partial: bool = False
    """Whether it is done, but not for all: `text` states what is left."""


def next_step(steps: Iterable[Step]) -> Step | None:
    """The first that is not done; None when all are."""
    return next((step for step in steps if step.state is not StepState.DONE), None)


def are_done(steps: Iterable[Step]) -> bool:
    return next_step(steps) is None


def some_of(names: Sequence[object], shown: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more
