"""Checks windows against Kafka's SampledStat with its defaults: two samples of 30 s."""

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.metrics.windows import SampledValues, Summary, is_over


def test_values_count_for_30_to_60_seconds() -> None:
    values = SampledValues()
    values.note(10.0, 0.0)
    values.note(20.0, 29.0)
    values.note(60.0, 30.0)
    assert values.summary(59.0) == Summary(last=60.0, low=10.0, high=60.0, mean=30.0)
    assert values.summary(60.0) == Summary(last=60.0, low=60.0, high=60.0, mean=60.0)


def test_only_the_last_value_outlives_its_window() -> None:
    values = SampledValues()
    assert values.summary(0.0).last == 0.0
    values.note(10.0, 0.0)
    last, *others = values.summary(60.0)
    assert last == 10.0
    assert all(isnan(other) for other in others)


@given(value=st.floats(0.001, 1e9), count=st.integers(1, 1_000))
def test_the_mean_of_equal_values_is_that_value(value: float, count: int) -> None:
    values = SampledValues()
    for _ in range(count):
        values.note(value, 0.0)
    assert values.summary(0.0) == Summary(last=value, low=value, high=value, mean=value)


def test_old_windows_are_dropped() -> None:
    values = SampledValues()
    for number in range(10):
        values.note(float(number), 30.0 * number)
    assert values.summary(271.0).low == 8.0


def test_a_window_counts_until_the_next_one_is_over() -> None:
    assert not is_over(100.0, 159.9)
    assert is_over(100.0, 160.0)
