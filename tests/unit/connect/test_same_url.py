import pytest

from sparkmirror.connect.worker_node import SameUrl

HERE, THERE = "http://worker-0:8083", "http://worker-1:8083"


def test_two_workers_with_one_url_are_named_once_a_killed_one_would_be_gone() -> None:
    same = SameUrl(HERE, 20.0)
    assert same.trouble([HERE, HERE, THERE], 100.0) is None
    assert same.trouble([HERE, HERE, THERE], 120.0) is None
    said = same.trouble([HERE, HERE, THERE], 120.1)
    assert said is not None
    assert f"another worker of the group is advertised as {HERE} too" in said


def test_a_killed_worker_that_is_back_is_no_second_one() -> None:
    same = SameUrl(HERE, 20.0)
    same.trouble([HERE, HERE], 100.0)
    same.trouble([HERE, THERE], 110.0)
    assert same.trouble([HERE, HERE], 125.0) is None


@pytest.mark.parametrize("members", [(), (HERE,), (HERE, THERE), (THERE, THERE)])
def test_one_url_each_is_fine(members: tuple[str, ...]) -> None:
    same = SameUrl(HERE, 20.0)
    same.trouble(members, 0.0)
    assert same.trouble(members, 1000.0) is None
