"""The short drill: what three brokers make different, one fault after the other under load.

`make soak` deals all there are, for as long as somebody wants.
"""

import os
import random
import sys
from typing import Final

from tests.faults.deals import Deal, Strike
from tests.faults.drill import Drill
from tests.faults.faults import FAULTS
from tests.faults.stage import REQUEST_TIMEOUT_S, Stage

SEED: Final = int(os.environ.get("SPARKMIRROR_DRILL_SEED", "20"))
DEALT: Final = (
    ("shuffle-leaders", "wake-beside-next-generation"),
    ("roll", "freeze-worker"),
    ("kill-executor",),
)


def test_nothing_is_lost_or_there_twice(stage: Stage) -> None:
    dice = random.Random(SEED)
    dealt = [
        Deal(number, tuple(_strike(name, number) for name in names), pause_s=dice.uniform(0.1, 1.0))
        for number, names in enumerate(DEALT, 1)
    ]
    told: list[str] = []
    drill = Drill(stage, told.append)
    with drill.load(rate=500) as watch:
        drill.deal(dealt, watch)
    verdict = drill.finish()
    sys.stdout.write("\n".join([*told, drill.figures(verdict)]))
    assert verdict.is_exact, f"seed {SEED}: {verdict}"
    assert verdict.equal == drill.written() > 0


def _strike(name: str, number: int) -> Strike:
    """Held no longer than it takes to be one."""
    hold_s = 1.2 * REQUEST_TIMEOUT_S if name == "freeze-worker" else 0.5
    return Strike(FAULTS[name], after_s=0.0, hold_s=hold_s, seed=f"{SEED}.{number}.{name}")
