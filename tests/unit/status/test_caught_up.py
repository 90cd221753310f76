from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.troubles import NEVER_RUN, Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import ConnectorLook, HeartbeatLook
from sparkmirror.status.caught_up import LagLimit, lag_of, waits_for
from sparkmirror.storage.progress import PartitionState
from sparkmirror.storage.promotions import Parting, Promotion, Stage
from sparkmirror.view.making import Node, view_of
from tests.support.mirror_looks import A_TO_B, answers, look, source

EXACT: Final = LagLimit()
"""The limit of programs that wait: no record may be missing."""
FAILING = {"state": PartitionState.FAILED, "error": "no right to WRITE", "lag": 7}


def test_partitions_beyond_the_limit_are_listed_worst_first() -> None:
    lags = (5, None, 70, 0, 70)
    partitions = [look("orders", at, {"lag": lag}, lag_s=None) for at, lag in enumerate(lags)]
    (answer,) = answers(source(*partitions))
    lag = lag_of(answer, bool, LagLimit())
    assert [it.source.partition for it in lag.behind] == [2, 4, 0]
    assert [it.source.partition for it in lag_of(answer, bool, LagLimit(5)).behind] == [2, 4]
    assert [it.source.partition for it in lag.unknown] == [1]
    assert (lag.records, lag.is_caught_up) == (145, False)


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
    found = [lag_of(answer, wanted, LagLimit()) for wanted in ("orders".__eq__, bool, "nothing".__eq__)]
    assert [it.is_caught_up for it in found] == [True, False, None]


def caught_up(of: ConnectorLook, limit: LagLimit = EXACT) -> bool | None:
    """Return what a program is told that has the view, and a command that has its JSON."""
    (answer,), (view,) = answers(of), view_of(Node("node-1", "1.0"), [of], 0.0).flows
    told = lag_of(answer, bool, limit)
    assert lag_of(view, bool, limit).is_caught_up is told.is_caught_up
    assert (waits_for([told]) is None) is (told.is_caught_up is True)
    return told.is_caught_up


def test_a_flow_that_only_emits_heartbeats_has_caught_up() -> None:
    beat = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=0.5, interval_s=1.0)
    late = replace(beat, age_s=900.0)
    assert [caught_up(it) for it in (beat, late)] == [True, True]


def test_a_flow_without_topics_has_caught_up_if_its_word_says_so() -> None:
    looks = source(), source(partitions=None), source(trouble="no", is_running=True)
    assert [caught_up(it) for it in looks] == [True, None, False]


def test_if_the_limit_is_the_word_it_decides_as_status_shows_it() -> None:
    by_word = LagLimit(0, None, by_word=True)
    java = source(look("orders", 0, {"lag": 9}, lag_s=60.0, slack_s=60.0))
    slow = source(look("orders", 0, {"lag": 9}, lag_s=6.0))
    assert [caught_up(it, by_word) for it in (java, slow)] == [True, False]
    assert caught_up(java) is False


def test_nothing_is_on_its_way_where_nobody_copies() -> None:
    late = look("orders", 0, {"lag": 5}, lag_s=1.0)
    codes: list[bool | None] = []
    for running in (True, None, False):
        stopped = source(late, is_observed=True, is_running=running, is_stopped=running is False)
        codes.append(caught_up(stopped, LagLimit(0, 5.0, by_word=True)))
    assert codes == [True, True, False]


def test_partitions_that_nobody_copies_are_behind_although_their_lag_is_not_known() -> None:
    refused = Cause(TroubleWord.NOT_CREATED, Subject.TOPIC, "no right to create {name}", "grant it")
    trouble = Trouble(refused, "bills", "a.bills", 1.0, (0, 2))
    unread = look("slow", 0, {"lag": None})
    assert caught_up(source(look(), unread)) is None
    assert caught_up(source(look(), unread, troubles=[trouble])) is False
    (answer,) = answers(source(look(), troubles=[trouble]))
    said = waits_for([lag_of(answer, bool, EXACT)])
    assert said == (
        "a->b: 0 records to copy, 0 partitions behind, 2 unknown; "
        "action required: not created: no right to create a.bills; grant it"
    )


def test_promoted_topics_have_nothing_left_to_copy() -> None:
    parted = {"orders": Promotion(Stage.PROMOTED, 0, b"", {0: Parting(90, 90)})}
    assert caught_up(source(look("orders", 0, {"lag": 9}, lag_s=60.0), promoted=parted)) is True
    assert caught_up(source(look("bills", 0, {"lag": 9}, lag_s=60.0), promoted=parted)) is False


def test_partitions_that_stand_by_have_no_lag_of_this_flow() -> None:
    """The opposite flow has copied their records: until a failback there is nothing to wait for."""
    waiting = look("bank", 0, {"state": PartitionState.STANDBY, "error": "b->a has copied it", "lag": 100})
    assert [caught_up(source(*it)) for it in ([waiting], [waiting, look("orders")])] == [True, True]
    assert caught_up(source(waiting, look("slow", 0, {"lag": 9}, lag_s=60.0))) is False
    (answer,) = answers(source(waiting, look("orders")))
    lag = lag_of(answer, bool, EXACT)
    assert (lag.standby, len(lag.partitions), lag.records) == (1, 1, 0)


def test_a_mirror_that_has_never_run_has_not_caught_up_with_an_empty_topic() -> None:
    seen = source(look(), is_observed=True, is_running=False, trouble=NEVER_RUN)
    assert caught_up(seen) is False
    (answer,) = answers(seen)
    assert waits_for([lag_of(answer, bool, EXACT)]) == (
        f"a->b: 0 records to copy, 0 partitions behind; action required: {NEVER_RUN}"
    )


def test_what_a_start_waits_for_is_told() -> None:
    (answer,) = answers(source(partitions=None, waits_for="b"))
    said = waits_for([lag_of(answer, bool, EXACT)])
    assert said == "a->b: 0 records to copy, 0 partitions behind; starting: waits for b"
