"""Tests of the schedule that a seed fixes."""

from collections import Counter
from itertools import islice

from tests.faults.faults import FAULTS
from tests.faults.schedule import rounds


def test_equal_seeds_give_equal_schedules() -> None:
    first, second, other = (list(islice(rounds(seed), 100)) for seed in (7, 7, 8))
    assert first == second
    assert first != other


def test_every_fault_occurs_by_its_weight_before_any_occurs_more_often() -> None:
    weights = Counter({name: fault.weight for name, fault in FAULTS.items()})
    injected = (injection.fault.name for round_ in rounds(7) for injection in round_.injections)
    assert [Counter(islice(injected, weights.total())) for _ in range(3)] == [weights] * 3


def test_faults_of_one_round_are_of_different_areas() -> None:
    scheduled = list(islice(rounds(7), 200))
    together = [[injection.fault.area for injection in round_.injections] for round_ in scheduled]
    assert {len(areas) for areas in together} == {1, 2, 3, 4}
    assert all(len(areas) == len(set(areas)) for areas in together)


def test_only_named_faults_are_injected() -> None:
    names = {"cut", "kill-worker"}
    scheduled = (injection for round_ in islice(rounds(7, names), 20) for injection in round_.injections)
    assert {injection.fault.name for injection in scheduled} == names
