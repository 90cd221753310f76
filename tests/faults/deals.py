"""What is dealt when: it follows from a seed alone, so that a run can be dealt again."""

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from tests.faults.faults import FAULTS, Fault

_PAUSE_S: Final = (0.2, 3.0)
_PAIRED: Final = 0.3


@dataclass(frozen=True, slots=True)
class Deal:
    """Faults that begin together, `pause_s` after the flow was well, and stay for `hold_s`."""

    number: int
    faults: tuple[Fault, ...]
    pause_s: float
    hold_s: float
    seed: str
    """Of the dice that choose victims."""

    @property
    def name(self) -> str:
        return " + ".join(fault.name for fault in self.faults)


def deals(seed: int, names: Collection[str] = ()) -> Iterator[Deal]:
    """For ever. Each of these faults (all of them, if none is named) is dealt before one comes again.

    Now and then a second one joins it, of another area.
    """
    dice = random.Random(seed)
    known = [FAULTS[name] for name in sorted(names or FAULTS)]
    pack: list[Fault] = []
    number = 0
    while True:
        number += 1
        pack = pack or dice.sample(known, len(known))
        faults = [pack.pop()]
        others = [fault for fault in known if fault.area is not faults[0].area]
        if others and dice.random() < _PAIRED:
            faults.append(dice.choice(others))
        hold_s = max(dice.uniform(*fault.hold_s) for fault in faults)
        yield Deal(number, tuple(faults), dice.uniform(*_PAUSE_S), hold_s, f"{seed}.{number}")
