"""What a seed deals."""

from collections import Counter
from itertools import islice

from tests.faults.deals import deals
from tests.faults.faults import FAULTS


def test_a_seed_deals_the_same_again() -> None:
    first, second, other = (list(islice(deals(seed), 100)) for seed in (7, 7, 8))
    assert first == second
    assert first != other


def test_every_fault_comes_before_one_comes_again() -> None:
    rounds = 3
    dealt = islice(deals(7), rounds * len(FAULTS))
    firsts = Counter(deal.faults[0].name for deal in dealt)
    assert firsts == dict.fromkeys(FAULTS, rounds)


def test_faults_that_come_together_are_of_different_areas() -> None:
    pairs = [deal.faults for deal in islice(deals(7), 200) if len(deal.faults) > 1]
    assert pairs
    assert all(first.area is not second.area for first, second in pairs)


def test_only_what_is_named_is_dealt() -> None:
    names = {"cut", "kill-worker"}
    assert {fault.name for deal in islice(deals(7, names), 20) for fault in deal.faults} == names
