import pytest

from sparkmirror.metrics.time_lag import TimeLag


def looked(*looks: tuple[int, int, float]) -> TimeLag:
    """Next offset, the source's end, when."""
    lag = TimeLag()
    for look in looks:
        lag.update(*look)
    return lag


def seconds(lag: TimeLag, now: float, last_age_s: float | None) -> float | None:
    since = lag.since(None if last_age_s is None else now - last_age_s)
    return None if since is None else max(0.0, now - since)


def test_the_lag_is_unknown_before_the_first_update() -> None:
    assert seconds(TimeLag(), 5.0, 1.0) is None


def test_a_complete_partition_has_no_lag_however_old_its_records() -> None:
    assert seconds(looked((100, 100, 0.0)), 500.0, 9_000.0) == 0.0


def test_the_lag_counts_from_when_the_first_missing_record_was_seen() -> None:
    lag = looked((100, 100, 0.0), (100, 110, 10.0), (100, 150, 20.0), (105, 160, 30.0))
    assert seconds(lag, 40.0, 1.0) == 30.0
    lag.update(110, 160, 41.0)
    assert seconds(lag, 41.0, 1.0) == 21.0
    lag.update(160, 160, 42.0)
    assert seconds(lag, 50.0, 1.0) == 0.0


def test_the_lag_of_a_stalled_partition_grows_without_updates() -> None:
    lag = looked((100, 100, 0.0), (100, 101, 1.0))
    assert seconds(lag, 3601.0, None) == 3600.0


def test_the_lag_of_an_older_backlog_comes_from_record_timestamps() -> None:
    lag = looked((0, 1000, 0.0))
    assert seconds(lag, 5.0, None) == 5.0
    lag.update(500, 1000, 6.0)
    assert seconds(lag, 6.0, 7200.0) == 7200.0
    lag.update(999, 1010, 7.0)
    assert seconds(lag, 7.0, 60.0) == 60.0
    lag.update(1000, 1010, 8.0)
    assert seconds(lag, 9.0, 60.0) == 2.0


def test_a_recreated_topic_starts_again() -> None:
    lag = looked((1000, 1000, 0.0), (0, 10, 50.0))
    assert seconds(lag, 51.0, None) == 1.0


def test_a_long_backlog_needs_little_memory_and_is_exact_to_a_few_percent() -> None:
    lag = TimeLag()
    lag.update(0, 0, 0.0)
    for second in range(1, 10_001):
        lag.update(0, second * 10, float(second))
    assert seconds(lag, 10_000.0, None) == pytest.approx(9_999.0)
    lags = []
    for copied in range(0, 100_000, 10):
        lag.update(copied, 100_000, 10_000.0)
        lags.append(seconds(lag, 10_000.0, None))
    assert len(set(lags)) <= 64, "as many as ends are remembered"
    behind = lags[5_000]
    assert behind is not None
    assert 4_999.0 <= behind <= 5_400.0


def test_records_that_are_missing_again_are_as_old_as_the_last_one_on_the_target() -> None:
    """A task may resume before the place that another one has reported."""
    lag = looked((0, 10, 0.0), (10, 20, 5.0), (20, 20, 6.0), (15, 20, 8.0))
    assert seconds(lag, 9.0, 4.0) == 4.0
    assert seconds(lag, 9.0, None) == 1.0
    lag.update(16, 30, 10.0)
    assert seconds(lag, 11.0, 7.0) == 7.0
    lag.update(20, 30, 12.0)
    assert seconds(lag, 12.0, 9.0) == 2.0
    lag.update(30, 30, 13.0)
    assert seconds(lag, 13.0, 1.0) == 0.0


def test_records_are_missing_again_while_others_have_come() -> None:
    lag = looked((0, 0, 0.0), (5, 10, 1.0), (3, 12, 2.0))
    assert seconds(lag, 4.0, 3.5) == 3.5
    lag.update(5, 12, 4.0)
    assert seconds(lag, 4.0, 0.5) == 3.0
