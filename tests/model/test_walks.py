"""Random walks of the model that are too many for the unit tests; `make soak` takes far more."""

from typing import Final

from tests.model.rules import IMPLEMENTED
from tests.model.scenes import walk_from

FIRST: Final = 1_000_000
WALKS: Final = 15_000


def test_random_walks_break_no_property() -> None:
    found = [
        (seed, found) for seed in range(FIRST, FIRST + WALKS) if (found := walk_from(seed, IMPLEMENTED)[1])
    ]
    assert not found, str(found[0])
