import pytest

from sparkmirror.metrics.flow_history import FlowHistory, HistoryPoint, Totals


def test_points_have_rates_since_the_one_before() -> None:
    history = FlowHistory()
    for now, records in ((0.0, 500), (10.0, 700), (25.0, 1000)):
        assert history.is_due(now)
        history.note(Totals(records, 100 * records, 3, 0.5), now)
        assert not history.is_due(now + 9.9)
    assert history.points(30.0) == [
        HistoryPoint(20.0, 20.0, 2000.0, 3, 0.5),
        HistoryPoint(5.0, 20.0, 2000.0, 3, 0.5),
    ]


def test_an_hour_is_kept_and_no_more() -> None:
    history = FlowHistory()
    for at in range(1000):
        history.note(Totals(at, at, None, None), 10.0 * at)
    points = history.points(9990.0)
    assert len(points) == 360
    assert points[0].ago_s == pytest.approx(3590.0)
    assert points[0].lag is None
    assert len(history.points(9990.0 + 1800.0)) == 181
