"""The table of tiers fits the tests that there are."""

from pathlib import Path

from tests.tiers import Tier, missing_places, tier_of

TESTS = Path(__file__).parents[1]


def test_every_exception_fits_a_test() -> None:
    assert not list(missing_places(TESTS))


def test_a_folder_decides() -> None:
    assert tier_of("unit", "test_ids.py::test_flow", ()) is Tier.CHECK
    assert tier_of("contract", "test_copy_loop.py::test_copy[memory_bench]", ["bench"]) is Tier.TEST
    assert tier_of("browser", "check_pages.py::test_page", ["page"]) is Tier.ALL


def test_a_fixture_decides_before_the_folder() -> None:
    assert tier_of("contract", "test_copy.py::test_copy", ["trio", "session"]) is Tier.ALL
    assert tier_of("system", "test_topics.py::test_topic", ["sides", "mirrored"]) is Tier.TEST


def test_an_exception_decides_before_the_fixture_and_the_longest_first() -> None:
    assert tier_of("system", "test_verify.py::test_split", []) is Tier.TEST
    assert tier_of("system", "test_verify.py::test_running_mirror_is_equal", ["mirrored"]) is Tier.ALL
