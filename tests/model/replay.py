"""Replays the steps of a trace, and shortens one that ends in a violation."""

from collections.abc import Sequence

from tests.model.copy_protocol import CopyProtocol
from tests.model.endings import ALONE, FRESH, alone, occurred, with_fresh_task
from tests.model.explore import Violation, judged
from tests.model.state import State
from tests.model.steps import Move, text_of


def move_named(protocol: CopyProtocol, state: State, text: str) -> Move | None:
    moves = (*protocol.moves(state), *protocol.faults(state))
    return next((move for move in moves if text_of(move) == text), None)


def replay(protocol: CopyProtocol, start: State, trace: Sequence[str]) -> Violation | None:
    """The violation that the steps lead to; None if they don't, or if one of them is not possible."""
    state, allowed = start, start.faults
    for count, text in enumerate(trace, 1):
        calm = _calmed(state, text)
        if calm is not None:
            allowed, state = occurred(allowed, state), calm
            continue
        move = move_named(protocol, state, text)
        if move is None:
            return None
        before, state = state, protocol.apply(state, move)
        found = judged(protocol, move, before, state, allowed)
        if found is not None:
            return Violation(found, tuple(trace[:count]), start)
    return None


def shortened(protocol: CopyProtocol, violation: Violation) -> Violation:
    """Leave out needless steps; the result is not always the shortest, but needs each of its steps."""
    size = len(violation.trace) // 2
    while size:
        shorter = _without_some(protocol, violation, size)
        if shorter is None:
            size //= 2
        else:
            violation = shorter
    return violation


def _without_some(protocol: CopyProtocol, violation: Violation, size: int) -> Violation | None:
    trace = violation.trace
    for at in range(0, len(trace), size):
        found = replay(protocol, violation.start, trace[:at] + trace[at + size :])
        if found is not None:
            return found
    return None


def _calmed(state: State, text: str) -> State | None:
    slot = len(state.tasks) + 1
    if text == FRESH.format(slot):
        return with_fresh_task(state)[1]
    return next((alone(state, at) for at in range(1, slot) if text == ALONE.format(at)), None)
