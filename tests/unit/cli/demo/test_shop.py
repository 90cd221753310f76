import pytest

from sparkmirror.cli.demo.shop import Throttle


@pytest.mark.parametrize("rate", [1, 7, 200, 5000])
def test_the_pace_is_kept_exactly_over_uneven_ticks(rate: int) -> None:
    pace = Throttle(rate, started=100.0)

    written = sum(pace.due(100.0 + second) for second in (0.013, 0.014, 0.4, 0.41, 0.9, 1.0, 1.5, 2.0))

    assert written in {2 * rate, 2 * rate - 1}


def test_nothing_is_due_before_the_first_record() -> None:
    pace = Throttle(10, started=0.0)

    assert [pace.due(0.05), pace.due(0.09), pace.due(0.11)] == [0, 0, 1]


def test_a_writer_far_behind_is_forgiven_all_but_one_second() -> None:
    pace = Throttle(1000, started=0.0)

    assert pace.due(60.0) == 1000
    assert pace.due(60.1) == 100
