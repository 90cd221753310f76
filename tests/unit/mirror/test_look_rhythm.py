import pytest

from sparkmirror.mirror.task_progress import LookRhythm


def noted(*looks: float) -> LookRhythm:
    rhythm = LookRhythm()
    for now in looks:
        rhythm.note(now)
    return rhythm


def test_what_is_new_is_read_right_before_the_next_look() -> None:
    rhythm = noted(10.0, 11.0)
    assert rhythm.read_in_s(11.2) == pytest.approx(0.65)
    assert rhythm.read_in_s(11.85) == pytest.approx(1.0)  # it was read, and the look comes


def test_while_nobody_looks_regularly_nothing_is_foreseen() -> None:
    assert LookRhythm().read_in_s(10.0) is None
    assert noted(10.0).read_in_s(10.1) is None
    assert noted(10.0, 20.0).read_in_s(20.1) is None
    assert noted(10.0, 11.0).read_in_s(13.1) is None  # nobody looks any more


def test_looks_in_one_moment_are_one() -> None:
    assert noted(10.0, 10.1, 11.0, 11.3).read_in_s(11.2) == pytest.approx(0.65)
