"""What a seed deals."""

from collections import Counter
from itertools import islice

from tests.faults.deals import deals
from tests.faults.faults import FAULTS


def test_a_seed_deals_the_same_again() -> None:
    first, second, other = (list(islice(deals(seed), 100)) for seed in (7, 7, 8))
    assert first == second
    assert first != other


def test_every_pack_is_dealt_out_before_it_is_shuffled_again() -> None:
    pack = Counter({name: fault.cards for name, fault in FAULTS.items()})
    dealt = (strike.fault.name for deal in deals(7) for strike in deal.strikes)
    assert [Counter(islice(dealt, pack.total())) for _ in range(3)] == [pack] * 3


def test_faults_that_come_together_are_of_different_areas() -> None:
    together = [[strike.fault.area for strike in deal.strikes] for deal in islice(deals(7), 200)]
    assert {len(areas) for areas in together} == {1, 2, 3}
    assert all(len(areas) == len(set(areas)) for areas in together)


def test_only_what_is_named_is_dealt() -> None:
    names = {"cut", "kill-worker"}
    assert {strike.fault.name for deal in islice(deals(7, names), 20) for strike in deal.strikes} == names
