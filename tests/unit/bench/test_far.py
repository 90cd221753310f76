import pytest

from bench.far import Load


def test_small_batches_of_few_partitions_do_not_fill_requests() -> None:
    assert Load("target", 1, 1_000_000).bound == pytest.approx(50e6)
    assert Load("target", 8, 1_000_000).bound == pytest.approx(50e6)
    assert Load("target", 8, 16_000).bound == pytest.approx(6.4e6)


def test_a_far_source_is_bound_by_one_fetch_per_round_trip() -> None:
    assert Load("source", 8, 1_000_000).bound == pytest.approx(8 * (1 << 20) / 0.1)
