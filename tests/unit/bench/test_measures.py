import pytest

from bench.measures import (
    Percentiles,
    Sample,
    Spread,
    Window,
    copying,
    middle_half,
    percentile,
    second_half,
    without_markers,
)

SAMPLES = [
    Sample(0.0, 0, 0.0),
    Sample(4.0, 0, 2.0),
    Sample(5.0, 100, 3.0),
    Sample(6.0, 600, 4.0),
    Sample(7.0, 1100, 6.0, 1.0, 2.0, 10.0),
    Sample(9.0, 1100, 9.0, 1.0, 2.0, 10.0),
]


def test_a_window_begins_with_the_first_record_and_ends_with_the_first_sight_of_the_last() -> None:
    assert copying(SAMPLES) == Window(1000, 2.0, 3.0, 1.0, 2.0, 10.0)


def test_the_second_half_begins_where_half_of_the_records_have_arrived() -> None:
    assert second_half(SAMPLES) == Window(500, 1.0, 2.0, 1.0, 2.0, 10.0)


def test_offsets_without_records_are_taken_off() -> None:
    assert [sample.records for sample in without_markers(SAMPLES, 0.9)] == [0, 0, 90, 540, 990, 990]


def test_the_middle_half_leaves_out_odd_runs() -> None:
    assert middle_half([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.1, 6.0]) == Spread(3.5, 1.0, 5.0)
    assert middle_half([]) is None


def test_rates_of_a_window() -> None:
    window = copying(SAMPLES)
    assert window.records_per_s == 500
    assert window.cpu_s_per_million == pytest.approx(3000)


def test_cpu_of_others_is_the_rest_after_the_side_and_the_brokers() -> None:
    assert copying(SAMPLES).other_cpu_s == 4.0
    assert Window(1, 1.0, 2.0, 0.0, 0.0, 1.9).other_cpu_s == 0.0


def test_an_empty_window_divides_by_nothing() -> None:
    empty = Window(0, 0.0, 1.0, 0.0, 0.0, 0.0)
    assert (empty.records_per_s, empty.cpu_s_per_million) == (0.0, 0.0)


def test_percentiles_are_nearest_rank() -> None:
    ordered = [float(value) for value in range(1, 1001)]
    assert [percentile(ordered, percent) for percent in (50, 99, 99.9, 100)] == [500, 990, 999, 1000]
    assert percentile([7.0], 50) == 7.0


def test_percentiles_of_unordered_values() -> None:
    assert Percentiles.of([3.0, 1.0, 2.0]) == Percentiles(3, 2.0, 3.0, 3.0, 3.0)


def test_spread_is_median_lowest_highest_and_none_of_nothing() -> None:
    assert Spread.of([5.0, 1.0, 2.0]) == Spread(2.0, 1.0, 5.0)
    assert Spread.of([]) is None
