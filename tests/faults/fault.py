"""A fault of the drills has an area, a duration, a weight and a function that injects it.

The function is a generator: it injects the fault, yields, and heals it. Random choices come from its `rng`.
It returns only when the effect has taken place, and leaves every process running. Faults of brokers are
injected when every replica is in sync.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tests.faults.testbed import NETWORK_TIMEOUT_S, REQUEST_TIMEOUT_S, DrillTestbed

Inject = Callable[[DrillTestbed, random.Random], Iterator[None]]


class Need(Enum):
    """The work of the mirror that a fault needs while it lasts: a full disk is noticed only by a write."""

    WRITES = "it has to write"
    ENDS = "it ends, and is started again"
    ALONE = "nothing else fails meanwhile"


class Area(Enum):
    """Two faults of one area are never combined: each relies on what the other takes away."""

    SPARK = "spark"
    BROKERS = "brokers"
    NETWORK = "network"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Fault:
    """`hold_s` are the shortest and the longest time it lasts; `weight` is its share of the schedule."""

    name: str
    area: Area
    hold_s: tuple[float, float]
    weight: int
    need: Need | None
    delays: bool
    """Whether a request may arrive that an attempt has sent, or sends, after its successor has begun."""
    inject: Callable[[DrillTestbed, random.Random], AbstractContextManager[None]]

    def goes_with(self, other: "Fault") -> bool:
        """Whether both can continue side by side without one waiting for the other's end."""
        needs = {self.need, other.need}
        return self.area is not other.area and needs != {Need.WRITES, Need.ENDS} and Need.ALONE not in needs


LONGER_THAN_REQUESTS: Final = (1.5 * REQUEST_TIMEOUT_S, 2.5 * REQUEST_TIMEOUT_S)
LONGER_THAN_SPARK: Final = (1.5 * NETWORK_TIMEOUT_S, 2.5 * NETWORK_TIMEOUT_S)
SHORT: Final = (1.0, 4.0)
_AT_ONCE: Final = (0.0, 0.0)
OFTEN: Final = 3
"""The weight of faults that heal within a second or two: more moments fit into the same time."""


def fault(
    area: Area,
    hold_s: tuple[float, float] = _AT_ONCE,
    *,
    weight: int = 1,
    need: Need | None = None,
    delays: bool = False,
) -> Callable[[Inject], Fault]:
    """The decorated function as a fault, which has its name."""
    return lambda inject: Fault(
        inject.__name__.replace("_", "-"), area, hold_s, weight, need, delays, contextmanager(inject)
    )
