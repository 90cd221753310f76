"""Runs the short drill: the faults that only clusters of three brokers have, one round after the other.

`make soak` injects all faults, for as long as asked.
"""

import os
import random
import sys
from typing import Final

from tests.faults.drill import Drill
from tests.faults.faults import FAULTS
from tests.faults.schedule import Injection, Round
from tests.faults.testbed import REQUEST_TIMEOUT_S, DrillTestbed

SEED: Final = int(os.environ.get("SPARKMIRROR_DRILL_SEED", "20"))
ROUNDS: Final = (
    ("shuffle-leaders", "wake-beside-next-copy-job"),
    ("roll", "freeze-worker"),
    ("kill-executor",),
)


def test_no_record_is_lost_or_duplicated_under_faults(testbed: DrillTestbed) -> None:
    rng = random.Random(SEED)
    rounds = [
        Round(number, tuple(_injection(name, number) for name in names), pause_s=rng.uniform(0.1, 1.0))
        for number, names in enumerate(ROUNDS, 1)
    ]
    log: list[str] = []
    drill = Drill(testbed, log.append)
    with drill.load(rate=500) as watch:
        drill.inject(rounds, watch)
    verdict = drill.finish()
    sys.stdout.write("\n".join([*log, drill.figures(verdict)]))
    assert verdict.is_exact, f"seed {SEED}: {verdict}"
    assert verdict.equal == drill.written() > 0


def _injection(name: str, number: int) -> Injection:
    """Held only as long as the fault needs to take effect."""
    hold_s = 1.2 * REQUEST_TIMEOUT_S if name == "freeze-worker" else 0.5
    return Injection(FAULTS[name], after_s=0.0, hold_s=hold_s, seed=f"{SEED}.{number}.{name}")
