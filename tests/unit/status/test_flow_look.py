from dataclasses import replace

import pytest

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.troubles import NEVER_RUN, Cause, Subject, Trouble, TroubleWord
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.storage.progress import ConnectorTroubles, JobEpoch, PartitionProgress
from tests.support.progress_records import IDLE

WELL = FlowLook([IDLE], heartbeat_age_s=0.5, report_age_s=0.8)
STOPPED = JobEpoch(ConnectorName("MirrorSourceConnector"), 3, stopped=True)


@pytest.mark.parametrize(
    ("look", "trouble"),
    [
        (WELL, None),
        (
            replace(WELL, heartbeat_age_s=60.0, report_age_s=60.0),
            "the mirror does not run: its last heartbeat was 60 s ago by this machine's clock",
        ),
        (
            replace(WELL, job=STOPPED, heartbeat_age_s=3.1),
            "the mirror was stopped in order; its last heartbeat was 3 s ago",
        ),
        (replace(WELL, job=STOPPED), None),
        (
            replace(WELL, heartbeat_age_s=None, report_age_s=None, stored_ms=1),
            "the mirror does not run: it has written no heartbeat",
        ),
        (FlowLook([]), "no mirror of this file has run yet"),
        (FlowLook([IDLE], heartbeat_interval_s=float("inf")), "no mirror of this file has run yet"),
        (replace(WELL, job=STOPPED, stopped_age_s=0.2), "the mirror was stopped in order 0 s ago"),
        (
            replace(WELL, job=STOPPED, stopped_age_s=2.0, heartbeat_age_s=None),
            "the mirror was stopped in order 2 s ago",
        ),
        (replace(WELL, job=STOPPED, stopped_age_s=60.0, heartbeat_age_s=1.0), None),
    ],
)
def test_a_mirror_that_does_not_run_is_trouble(look: FlowLook, trouble: str | None) -> None:
    assert look.trouble == trouble
    assert look.is_running is (trouble is None)


def test_a_mirror_that_ran_after_one_that_was_stopped_in_order_was_not() -> None:
    """Java's, that has continued the flow: its heartbeats are all that it leaves."""
    java = replace(WELL, job=STOPPED, stopped_age_s=300.0, heartbeat_age_s=200.0)
    assert (java.is_running, java.stopped_in_order) == (False, False)
    assert java.trouble == "the mirror does not run: its last heartbeat was 200 s ago by this machine's clock"
    assert replace(java, heartbeat_age_s=301.0).stopped_in_order
    assert replace(java, heartbeat_age_s=301.0).trouble == "the mirror was stopped in order 300 s ago"


def test_reports_of_a_mirror_that_was_stopped_count_no_more() -> None:
    reporting = replace(WELL, reports={IDLE.source: IDLE})
    assert reporting.reported == {IDLE.source: IDLE}
    assert replace(reporting, job=STOPPED).reported == {}


def test_a_lag_has_held_since_its_task_reported_it_and_no_other_position() -> None:
    own = replace(IDLE, position=41, lag=7, updated_at=1000.0)
    look = replace(WELL, reports={own.source: own})
    assert look.unchanged_s(replace(own, lag=9), 1070.0) == 70.0
    assert look.unchanged_s(replace(own, position=42), 1070.0) == 0.0
    assert FlowLook([]).unchanged_s(own, 1070.0) == 0.0, "as Java's"
    idle = replace(WELL, reports={own.source: replace(own, lag=0)})
    assert idle.unchanged_s(own, 1070.0) == 0.0, "its records are new"


def test_either_sign_of_life_is_enough() -> None:
    assert replace(WELL, heartbeat_age_s=None).is_running
    assert replace(WELL, report_age_s=None).is_running, "as Java's"
    assert replace(WELL, report_age_s=500.0).is_running, "an idle mirror has nothing to report"


def test_rare_heartbeats_are_waited_for() -> None:
    rare = replace(WELL, heartbeat_age_s=100.0, report_age_s=None, heartbeat_interval_s=60.0)
    assert rare.is_running
    assert replace(rare, heartbeat_age_s=181.0).is_running is False


def test_a_clock_that_is_ahead_tells_nothing() -> None:
    """A dead mirror's last heartbeat would look new."""
    ahead = replace(WELL, heartbeat_age_s=-3600.0, report_age_s=None)
    assert ahead.is_running is None
    assert replace(ahead, heartbeat_age_s=-2.0).is_running
    assert replace(ahead, job=STOPPED).is_running is None
    assert replace(ahead, report_age_s=1.0).is_running


def test_without_heartbeats_and_reports_nobody_can_tell() -> None:
    silent = FlowLook([IDLE], heartbeat_interval_s=float("inf"), stored_ms=1)
    assert silent.is_running is None
    assert replace(silent, report_age_s=500.0).is_running is None, "nothing may have changed since"
    assert replace(silent, report_age_s=1.0).is_running


SOURCE = ConnectorName("MirrorSourceConnector")
REFUSED = Trouble(
    Cause(TroubleWord.NOT_GROWN, Subject.TOPIC, "no right", "give it"), IDLE.source.topic, partitions=(1, 3)
)


def partitions(count: int, topic: str = IDLE.source.topic) -> list[PartitionProgress]:
    return [replace(IDLE, source=TopicPartition(topic, number)) for number in range(count)]


def published(*troubles: Trouble, is_stopped: bool = False) -> dict[ConnectorName, ConnectorTroubles]:
    return {SOURCE: ConnectorTroubles(SOURCE, troubles, is_stopped)}


def test_what_a_mirror_has_said_that_it_can_t_do_counts_while_it_may_run() -> None:
    running = replace(WELL, partitions=partitions(3), connector=SOURCE, published=published(REFUSED))
    assert running.troubles == [REFUSED]
    assert [it.source.partition for it in running.mirrored] == [0]
    crashed = replace(running, heartbeat_age_s=900.0, report_age_s=900.0)
    assert (crashed.troubles, len(crashed.mirrored)) == ((), 3)
    assert crashed.trouble is not None


def test_a_mirror_that_copies_nothing_yet_is_shown_by_what_its_connector_says() -> None:
    """It emits no heartbeats either."""
    begun = FlowLook([], heartbeat_interval_s=float("inf"), connector=SOURCE, published=published(REFUSED))
    assert (begun.is_running, begun.trouble, begun.troubles) == (None, None, [REFUSED])
    ended = replace(begun, published=published(is_stopped=True))
    assert (ended.is_stopped, ended.has_never_run) == (True, False)
    never = replace(begun, published={})
    assert (never.is_running, never.trouble) == (False, NEVER_RUN)


def test_topics_that_are_blocked_by_name_are_so_whether_a_mirror_runs_or_not() -> None:
    blocked = Trouble(Cause(TroubleWord.BLOCKED, Subject.TOPIC, "a bad name"), "bad", partitions=(0, 1))
    for look in (WELL, replace(WELL, heartbeat_age_s=900.0, report_age_s=900.0)):
        assert replace(look, blocked=[blocked]).troubles == [blocked]


def test_what_came_after_the_start_is_left_out_where_a_mirror_looks_once() -> None:
    late = partitions(2, "late")
    look = replace(
        WELL,
        partitions=[*partitions(1), *late],
        waiting=frozenset(it.source for it in late),
        connector=SOURCE,
    )
    assert (look.troubles, len(look.mirrored)) == ([], 3)
    once = replace(look, refreshes_topics=False)
    assert [(it.what, it.word, it.requires_action) for it in once.troubles] == [("late", "waiting", False)]
    assert [it.source.topic for it in once.mirrored] == [IDLE.source.topic]
    refused = REFUSED._replace(what="late", partitions=(0, 2))
    assert replace(once, published=published(refused)).troubles == [refused]
