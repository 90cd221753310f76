"""Random walks of the model that are too many for the unit tests; `make soak` takes far more."""

from typing import Final

import pytest

from tests.model.rules import IMPLEMENTED
from tests.model.scenes import ENDS, walks_from

FIRST: Final = 1_000_000
SEEDS: Final = range(FIRST, FIRST + 100_000 // ENDS)
FEW: Final = 20_000 // ENDS


@pytest.mark.parametrize("seeds", [SEEDS[:FEW], SEEDS[FEW:]], ids=["first", "more"])
def test_random_walks_break_no_property(seeds: range) -> None:
    found = [(seed, violation) for seed in seeds if (violation := walks_from(seed, IMPLEMENTED)[1])]
    assert not found, str(found[0])
