"""Exploration: breadth first, and by random walks that end without faults."""

import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.model.copy_protocol import CopyProtocol
from tests.model.copying import finish
from tests.model.endings import STEPS_TO_END_MAX, calmed, occurred, with_fresh_task
from tests.model.properties import final_violation, repeating_violation, violation
from tests.model.state import DEAD, DONE, Faults, State
from tests.model.steps import Move, text_of

_FAULT_RATES: Final = (0.05, 0.15, 0.3)
_SHARES_OF_FAULTS: Final = (0.2, 0.5, 1.0)
"""A walk has faults of some kinds only: with all kinds at once, few of them meet."""


class Violation(NamedTuple):
    text: str
    trace: tuple[str, ...]
    start: State

    def __str__(self) -> str:
        steps = "".join(f"\n  {number:3}. {step}" for number, step in enumerate(self.trace, 1))
        return f"{self.text}, after{steps}"


Found = tuple[str, tuple[str, ...]]
"""A violation, and the steps to it from a state."""


class Explored(NamedTuple):
    states: int
    depth: int
    is_complete: bool
    """Whether these are all states."""
    violation: Violation | None


def breadth_first(protocol: CopyProtocol, start: State, *, states_max: int, ends_every: int = 0) -> Explored:
    """All states up to so many, nearest first. From each n-th the protocol also runs to its end."""
    allowed = start.faults
    come_from: dict[int, tuple[int, str]] = {hash(start): (0, "")}
    level, depth = [start], 0
    while level:
        following: list[State] = []
        for state in level:
            for move in (*protocol.moves(state), *protocol.faults(state)):
                after = protocol.apply(state, move)
                key = hash(after)
                if key in come_from:
                    continue
                come_from[key] = hash(state), text_of(move)
                following.append(after)
                count = len(come_from)
                text = judged(protocol, move, state, after, allowed)
                found: Found | None = None if text is None else (text, ())
                if found is None and ends_every and count % ends_every == 0:
                    found = run_to_end(protocol, after, allowed, random.Random(count))
                if found is not None:
                    trace = (*_trace(come_from, key), *found[1])
                    return Explored(count, depth + 1, False, Violation(found[0], trace, start))
            if len(come_from) >= states_max:
                return Explored(len(come_from), depth, False, None)
        level, depth = following, depth + 1
    return Explored(len(come_from), depth, True, None)


def walks(protocol: CopyProtocol, start: State, seed: int, ends: int) -> Violation | None:
    """Random walks with faults that share a beginning, each longer than the one before, and end without."""
    rng = random.Random(seed)
    state = start = _with_some_faults(start, rng)
    allowed = start.faults
    trace: list[Move] = []
    fault_rate = rng.choice(_FAULT_RATES)
    steps = rng.randint(10, 120)
    for end in range(1, ends + 1):
        while len(trace) < steps * end // ends:
            move = _drawn(protocol, state, rng, fault_rate)
            if move is None:
                break
            before, state = state, protocol.apply(state, move)
            trace.append(move)
            found = judged(protocol, move, before, state, allowed)
            if found is not None:
                return Violation(found, _texts(trace), start)
        ending = run_to_end(protocol, state, allowed, rng)
        if ending is not None:
            return Violation(ending[0], (*_texts(trace), *ending[1]), start)
    return None


def _drawn(protocol: CopyProtocol, state: State, rng: random.Random, fault_rate: float) -> Move | None:
    kinds = protocol.faults, protocol.moves
    first, second = kinds if rng.random() < fault_rate else kinds[::-1]
    moves = first(state) or second(state)
    return rng.choice(moves) if moves else None


def run_to_end(protocol: CopyProtocol, state: State, allowed: Faults, rng: random.Random) -> Found | None:
    """A task continues alone, its steps and those of network and coordinator in any order."""
    allowed = occurred(allowed, state)
    text, state = calmed(state, rng)
    trace: list[Move | str] = [text]
    for _ in range(STEPS_TO_END_MAX):
        moves = protocol.moves(state)
        if not moves:
            break
        move = rng.choice(moves)
        before, state = state, protocol.apply(state, move)
        trace.append(move)
        found = judged(protocol, move, before, state, allowed)
        if found is not None:
            return found, _texts(trace)
        if state.tasks[-1].phase == DONE:
            return None
        if state.tasks[-1].phase == DEAD:
            text, state = with_fresh_task(state)
            trace.append(text)
    return "it comes to no end", _texts(trace)


def judged(protocol: CopyProtocol, move: Move, before: State, state: State, allowed: Faults) -> str | None:
    """Return what the step from the state `before` has violated."""
    is_final = move[0] is finish and state.tasks[move[1][0] - 1].phase == DONE
    if protocol.world.rules.repeats:
        return repeating_violation(state, allowed, is_final=is_final)
    if is_final:
        return final_violation(before, state, allowed)
    return violation(before, state, allowed)


def _with_some_faults(start: State, rng: random.Random) -> State:
    share = rng.choice(_SHARES_OF_FAULTS)
    faults = Faults(*(count if rng.random() < share else 0 for count in start.faults))
    return start._replace(faults=faults)


def _texts(moves: Sequence[Move | str]) -> tuple[str, ...]:
    return tuple(move if isinstance(move, str) else text_of(move) for move in moves)


def _trace(come_from: dict[int, tuple[int, str]], key: int) -> tuple[str, ...]:
    return tuple(reversed(list(_back(come_from, key))))


def _back(come_from: dict[int, tuple[int, str]], key: int) -> Iterator[str]:
    while True:
        key, text = come_from[key]
        if not text:
            return
        yield text
