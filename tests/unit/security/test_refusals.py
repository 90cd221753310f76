import pytest

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.security.refusals import Refusals


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def is_refused(refusals: Refusals, key: str) -> bool:
    try:
        refusals.require_none(key)
    except AuthenticationError:
        return True
    return False


def asks_in(clock: Clock, refusals: Refusals, seconds: int, key: str = "a") -> int:
    """Return how often it is asked in that time, by five clients ten times a second each."""
    asked = 0
    for _ in range(seconds * 10):
        clock.now += 0.1
        for _ in range(5):
            if not is_refused(refusals, key):
                asked += 1
                refusals.refused(key, "no")
    return asked


def test_all_clients_together_ask_as_often_as_one() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    assert asks_in(clock, refusals, 10) <= 5
    assert asks_in(clock, refusals, 600) <= 30


def test_others_and_who_was_accepted_do_not_wait() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    refusals.refused("a", "no, because")
    with pytest.raises(AuthenticationError, match="no, because"):
        refusals.require_none("a")
    asks_in(clock, refusals, 600)
    assert not is_refused(refusals, "another")
    refusals.accepted("a")
    assert not is_refused(refusals, "a")
    assert asks_in(clock, refusals, 4) >= 2  # it begins with short waits again


def test_those_that_asked_at_once_count_as_one() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    for _ in range(50):
        refusals.refused("a", "no")
    clock.now += 2
    assert not is_refused(refusals, "a")
