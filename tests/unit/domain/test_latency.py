from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.latency import EMPTY, LatencyHistogram, bucket_middle_ms, bucket_of

LATENCIES = st.lists(st.floats(0.3, 1e7), min_size=1, max_size=50)


def histogram(latencies: list[float]) -> LatencyHistogram:
    return LatencyHistogram(Counter(map(bucket_of, latencies)))


@given(st.floats(0.3, 1e9))
def test_a_bucket_is_exact_to_seven_percent(latency_ms: float) -> None:
    assert bucket_middle_ms(bucket_of(latency_ms)) == pytest.approx(latency_ms, rel=0.073)


@pytest.mark.parametrize("latency_ms", [-1e6, -1, 0, 0.1, 0.25])
def test_clocks_that_differ_share_the_first_bucket(latency_ms: float) -> None:
    assert bucket_of(latency_ms) == 0


def test_buckets_grow_with_latency() -> None:
    buckets = [bucket_of(0.1 * 1.1**step) for step in range(200)]
    assert buckets == sorted(buckets)


@given(latencies=LATENCIES, q=st.floats(0.01, 1))
def test_a_quantile_is_that_of_the_sorted_list(latencies: list[float], q: float) -> None:
    ordered = sorted(latencies)
    rank = next(at for at in range(len(ordered)) if at + 1 >= q * len(ordered))
    assert histogram(latencies).quantile(q) == pytest.approx(ordered[rank], rel=0.08)


@given(latencies=LATENCIES, qs=st.lists(st.floats(0.01, 1), max_size=4))
def test_several_quantiles_are_those_of_each(latencies: list[float], qs: list[float]) -> None:
    of = histogram(latencies)
    assert of.quantiles(*sorted(qs)) == tuple(map(of.quantile, sorted(qs)))


def test_nothing_has_no_quantile() -> None:
    assert EMPTY.quantile(0.5) is None
    assert EMPTY.quantiles(0.5, 0.99) == (None, None)
    assert EMPTY.total == 0


@given(earlier=LATENCIES, later=LATENCIES)
def test_what_is_merged_can_be_taken_away_again(earlier: list[float], later: list[float]) -> None:
    whole = histogram(earlier).merged(histogram(later))
    assert whole == histogram(earlier + later)
    assert whole.minus(histogram(earlier)) == histogram(later)
    assert whole.total == len(earlier) + len(later)


def test_a_restarted_histogram_gives_no_negative_counts() -> None:
    assert LatencyHistogram({1: 2, 2: 5}).minus(LatencyHistogram({1: 7})) == LatencyHistogram({2: 5})
