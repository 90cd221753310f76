from sparkmirror.cli.commands.lag import _summary, _to_json
from sparkmirror.domain.ids import Alias
from sparkmirror.metrics.looks import ClusterLook
from sparkmirror.status.caught_up import LagLimit, lag_of
from tests.support.mirror_looks import answers, look, source


def test_a_mirror_that_does_not_run_is_told_beside_a_lag_of_0() -> None:
    said = []
    for trouble, is_stopped in (
        ("no mirror of this file has run yet", False),
        ("the mirror does not run: its last heartbeat was 60 s ago", False),
        ("the mirror was stopped in order 9 s ago", True),
    ):
        seen = source(look(), is_observed=True, is_running=False, is_stopped=is_stopped, trouble=trouble)
        (answer,) = answers(seen)
        lag = lag_of(answer, bool, LagLimit(by_word=True))
        said.append((lag.is_caught_up, _summary(lag)))
    silent = "the mirror does not run: its last heartbeat was 60 s ago"
    assert said == [
        (False, "action required: no mirror of this file has run yet"),
        (True, f"caught up, 1 partition; action required: {silent}"),
        (True, "caught up, 1 partition; stopped: the mirror was stopped in order 9 s ago"),
    ]


def test_the_cause_of_unknown_lags_is_told() -> None:
    away = ClusterLook(Alias("b"), False, 75.0, "Connection refused")
    (answer,) = answers(source(look(), report_age_s=75.0, clusters=[away]))
    lag = lag_of(answer, bool, LagLimit())
    assert "1 of 1 partition unknown (b does not answer since " in _summary(lag)
    assert (_to_json(lag)["records"], _to_json(lag)["unknown_partitions"]) == (None, 1)


def test_why_nothing_is_copied_is_told_beside_the_lag() -> None:
    never = "no mirror of this file has run yet"
    (answer,) = answers(
        source(look("orders", 0, {"lag": 3}, lag_s=0.5), is_observed=True, is_running=False, trouble=never)
    )
    lag = lag_of(answer, bool, LagLimit(by_word=True))
    assert _summary(lag) == f"3 records behind, in 1 of 1 partition; action required: {never}"
    assert [it["why"] for it in _to_json(lag)["partitions"]] == [None]
