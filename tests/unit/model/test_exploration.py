"""The protocol explored: all states of small scopes, and random walks through larger ones."""

import sys
from typing import Final

import pytest

from tests.model.copy_protocol import CopyProtocol
from tests.model.explore import breadth_first
from tests.model.mutants import MUTANTS
from tests.model.replay import replay, shortened
from tests.model.rules import UNFENCED, Find, Rules
from tests.model.scenes import SCOPES, walks_from, walks_to_catch

STATES: Final = 5_000
SEEDS: Final = 200
WALKS_OF_A_MUTANT: Final = 5_000


@pytest.mark.parametrize("name", SCOPES)
def test_no_state_of_a_small_scope_breaks_a_property(name: str) -> None:
    scene = SCOPES[name]
    protocol = CopyProtocol(setting=scene.setting)
    explored = breadth_first(protocol, scene.start, states_max=STATES, ends_every=100)
    assert explored.violation is None, str(explored.violation)
    assert explored.is_complete or explored.states >= STATES


def test_random_walks_break_no_property() -> None:
    found = [(seed, violation) for seed in range(SEEDS) if (violation := walks_from(seed, Rules())[1])]
    assert not found, str(found[0])


def test_without_claims_records_come_twice_and_none_is_skipped() -> None:
    found = [(seed, violation) for seed in range(SEEDS) if (violation := walks_from(seed, UNFENCED)[1])]
    assert not found, str(found[0])


def test_mutant_that_matches_contents_instead_of_copying_again_skips_records() -> None:
    rules = UNFENCED._replace(find=Find.BY_CONTENT)
    walks = walks_to_catch(rules, 0, WALKS_OF_A_MUTANT)
    assert walks is not None
    _, found = walks_from(walks - 1, rules, 1)
    assert found is not None
    assert "is not on the target" in found.text


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    walks = walks_to_catch(MUTANTS[name], 0, WALKS_OF_A_MUTANT)
    assert walks is not None
    sys.stdout.write(f"{name}: caught by walk {walks}\n")


def test_shortened_violation_needs_each_of_its_steps() -> None:
    rules = MUTANTS["counting instead of ends"]
    walks = walks_to_catch(rules, 0, WALKS_OF_A_MUTANT)
    assert walks is not None
    protocol, found = walks_from(walks - 1, rules, 1)
    assert found is not None
    short = shortened(protocol, found)
    assert len(short.trace) < len(found.trace)
    steps = range(len(short.trace))
    assert not any(replay(protocol, short.start, short.trace[:at] + short.trace[at + 1 :]) for at in steps)
