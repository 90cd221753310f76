"""Decides which faults are injected when. A seed fixes the whole schedule, so that a run can be repeated."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.fault import Area, Fault
from tests.faults.faults import FAULTS

_PAUSE_S: Final = (0.2, 2.0)
_APART_S: Final = 3.0
_COMBINED: Final = 0.75
"""The probability that another fault is injected together with those chosen."""


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault of a round: injected `after_s` after the round began, held for `hold_s`, then healed."""

    fault: Fault
    after_s: float
    hold_s: float
    seed: str
    """Seeds the choice of its victims."""


@dataclass(frozen=True, slots=True)
class Round:
    """Faults that overlap; the first is injected `pause_s` after all partitions received records again."""

    number: int
    injections: tuple[Injection, ...]
    pause_s: float

    @property
    def name(self) -> str:
        return " + ".join(injection.fault.name for injection in self.injections)


def rounds(seed: int, names: Collection[str] = ()) -> Iterator[Round]:
    """An endless schedule of the named faults, by default of all.

    Each fault occurs `weight` times, in random order, before any of them occurs more often. A round has at
    most one fault of each area.
    """
    rng = random.Random(seed)
    weighted = [FAULTS[name] for name in sorted(names or FAULTS) for _ in range(FAULTS[name].weight)]
    left: list[Fault] = []
    number = 0
    while True:
        number += 1
        left = left or rng.sample(weighted, len(weighted))
        injections = tuple(
            Injection(
                fault,
                after_s=rng.uniform(0.0, _APART_S) if place else 0.0,
                hold_s=rng.uniform(*fault.hold_s),
                seed=f"{seed}.{number}.{fault.name}",
            )
            for place, fault in enumerate(_combined(left, rng))
        )
        yield Round(number, injections, rng.uniform(*_PAUSE_S))


def _combined(left: list[Fault], rng: random.Random) -> Sequence[Fault]:
    """The next fault of those left and often the next ones that it can be combined with; removes them."""
    chosen = [left.pop()]
    while len(chosen) < len(Area) and rng.random() < _COMBINED:
        fitting = (fault for fault in reversed(left) if all(fault.goes_with(other) for other in chosen))
        another = next(fitting, None)
        if another is None:
            break
        left.remove(another)
        chosen.append(another)
    return chosen
