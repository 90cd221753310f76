"""Random walks of the model that are too many for the unit tests; `make soak` takes far more."""

from typing import Final

from tests.model.rules import IMPLEMENTED
from tests.model.scenes import ENDS, walks_from

FIRST: Final = 1_000_000
WALKS: Final = 100_000


def test_random_walks_break_no_property() -> None:
    seeds = range(FIRST, FIRST + WALKS // ENDS)
    found = [(seed, violation) for seed in seeds if (violation := walks_from(seed, IMPLEMENTED)[1])]
    assert not found, str(found[0])
