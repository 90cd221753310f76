"""All three brokers of a target are killed at random moments of a long beginning.

Not part of `make test`: `python -m pytest tests/contract/check_killed_fill.py` takes some minutes of CPU.
"""

import pytest

from sparkmirror.clusters import LocalCluster
from tests.contract.killed_fill import fill_under_kills

OFFSETS = 40_000_007


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(2))
def test_a_beginning_survives_the_death_of_all_brokers(trio: LocalCluster, number: int) -> None:
    fill_under_kills(trio, f"killed.fill-{number}", OFFSETS, replicas=3, kills=2)
