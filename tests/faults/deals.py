"""What is dealt when: it follows from a seed alone, so that a run can be dealt again."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.faults import FAULTS, Area, Fault

_PAUSE_S: Final = (0.2, 2.0)
_APART_S: Final = 3.0
_JOINED: Final = 0.75


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault of a deal: it strikes `after_s` after the deal began, stays for `hold_s`, and heals."""

    fault: Fault
    after_s: float
    hold_s: float
    seed: str
    """Of the dice that choose its victims."""


@dataclass(frozen=True, slots=True)
class Deal:
    """Faults that go on side by side; the first strikes `pause_s` after the flow was well."""

    number: int
    strikes: tuple[Strike, ...]
    pause_s: float

    @property
    def name(self) -> str:
        return " + ".join(strike.fault.name for strike in self.strikes)


def deals(seed: int, names: Collection[str] = ()) -> Iterator[Deal]:
    """For ever, like cards: a pack has all of these faults (all there are, if none is named).

    It's dealt out before it's shuffled again. A deal has one fault of each area at most.
    """
    dice = random.Random(seed)
    cards = [FAULTS[name] for name in sorted(names or FAULTS) for _ in range(FAULTS[name].cards)]
    pack: list[Fault] = []
    number = 0
    while True:
        number += 1
        pack = pack or dice.sample(cards, len(cards))
        hand = _hand(pack, dice)
        strikes = tuple(
            Strike(
                fault,
                after_s=dice.uniform(0.0, _APART_S) if place else 0.0,
                hold_s=dice.uniform(*fault.hold_s),
                seed=f"{seed}.{number}.{fault.name}",
            )
            for place, fault in enumerate(hand)
        )
        yield Deal(number, strikes, dice.uniform(*_PAUSE_S))


def _hand(pack: list[Fault], dice: random.Random) -> Sequence[Fault]:
    """The next one of the pack, and with it, more often than not, the next ones that go with it."""
    hand = [pack.pop()]
    while len(hand) < len(Area) and dice.random() < _JOINED:
        fitting = (fault for fault in reversed(pack) if all(fault.goes_with(dealt) for dealt in hand))
        other = next(fitting, None)
        if other is None:
            break
        pack.remove(other)
        hand.append(other)
    return hand
