from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.cli.commands.lag import LagLimit, _summary, _to_json, lag_of
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.metrics.looks import ClusterLook, ConnectorLook, HeartbeatLook
from sparkmirror.storage.progress import PartitionState
from tests.support.mirror_looks import A_TO_B, answers, look, source

FAILING = {"state": PartitionState.FAILED, "error": "no right to WRITE", "lag": 7}


def test_partitions_beyond_the_limit_are_listed_worst_first() -> None:
    lags = (5, None, 70, 0, 70)
    partitions = [look("orders", at, {"lag": lag}, lag_s=None) for at, lag in enumerate(lags)]
    (answer,) = answers(source(*partitions))
    lag = lag_of(answer, bool, LagLimit())
    assert [it.source.partition for it in lag.behind] == [2, 4, 0]
    assert [it.source.partition for it in lag_of(answer, bool, LagLimit(5)).behind] == [2, 4]
    assert [it.source.partition for it in lag.unknown] == [1]
    assert (lag.records, lag.exit_code) == (145, 1)


@pytest.mark.parametrize(
    ("limit", "lag_s", "reported", "is_kept"),
    [
        (LagLimit(5, 3.0), 2.0, {"lag": 7}, True),
        (LagLimit(5, 3.0), 9.0, {"lag": 7}, False),
        (LagLimit(5, 3.0), None, {"lag": 7}, False),
        (LagLimit(7, 3.0), 9.0, {"lag": 7}, True),
        (LagLimit(7, 3.0), None, {"lag": 7}, True),
        (LagLimit(5), 2.0, {"lag": 7}, False),
        (LagLimit(5, 3.0), 2.0, FAILING, False),
    ],
)
def test_of_two_limits_one_is_enough_unless_an_error_is_reported(
    limit: LagLimit, lag_s: float | None, reported: Mapping[str, Any], *, is_kept: bool
) -> None:
    ((partition,),) = (it.partitions for it in answers(source(look(reported=reported, lag_s=lag_s))))
    assert limit.is_kept(partition) is is_kept


def test_only_topics_that_are_wanted_count() -> None:
    (answer,) = answers(source(look("orders"), look("slow", 0, {"lag": 9}, lag_s=60.0)))
    assert lag_of(answer, "orders".__eq__, LagLimit()).exit_code == 0
    assert lag_of(answer, bool, LagLimit()).exit_code == 1
    assert lag_of(answer, "nothing".__eq__, LagLimit()).exit_code == 2


def code(of: ConnectorLook, limit: LagLimit) -> int:
    (answer,) = answers(of)
    return lag_of(answer, bool, limit).exit_code


def test_a_flow_that_only_emits_heartbeats_has_caught_up() -> None:
    beat = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=0.5, interval_s=1.0)
    late = replace(beat, age_s=900.0)
    assert [code(it, LagLimit()) for it in (beat, late)] == [0, 0]


def test_a_flow_without_topics_has_the_code_of_its_word() -> None:
    looks = source(), source(partitions=None), source(trouble="no", is_running=True)
    assert [code(it, LagLimit()) for it in looks] == [0, 2, 1]


def test_by_default_the_word_decides_as_status_shows_it() -> None:
    by_word = LagLimit(0, None, by_word=True)
    java = source(look("orders", 0, {"lag": 9}, lag_s=60.0, slack_s=60.0))
    slow = source(look("orders", 0, {"lag": 9}, lag_s=6.0))
    assert [code(it, by_word) for it in (java, slow)] == [0, 1]


def test_nothing_is_on_its_way_where_nobody_copies() -> None:
    late = look("orders", 0, {"lag": 5}, lag_s=1.0)
    codes = []
    for running in (True, None, False):
        stopped = source(late, is_observed=True, is_running=running, is_stopped=running is False)
        codes.append(code(stopped, LagLimit(0, 5.0, by_word=True)))
    assert codes == [0, 0, 1]


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
        said.append((lag.exit_code, _summary(lag)))
    silent = "the mirror does not run: its last heartbeat was 60 s ago"
    assert said == [
        (1, "action required: no mirror of this file has run yet"),
        (0, f"caught up, 1 partition; action required: {silent}"),
        (0, "caught up, 1 partition; stopped: the mirror was stopped in order 9 s ago"),
    ]


def test_the_cause_of_unknown_lags_is_told() -> None:
    away = ClusterLook(Alias("b"), False, 75.0, "Connection refused")
    (answer,) = answers(source(look(), report_age_s=75.0, clusters=[away]))
    lag = lag_of(answer, bool, LagLimit())
    assert "1 of 1 partition unknown (b does not answer since " in _summary(lag)
    assert (_to_json(lag)["records"], _to_json(lag)["unknown_partitions"]) == (None, 1)
