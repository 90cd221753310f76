from typing import Final

from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import ClusterLook, ConnectorLook, HeartbeatLook, PartitionLook, StandingLook
from sparkmirror.storage.progress import PartitionState
from sparkmirror.ui.needs import Need, needs_of
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.words import Word
from tests.support.mirror_looks import A_TO_B, groups, look, source

AT: Final = 100_000.0


def needs(*looks: ConnectorLook) -> list[Need]:
    found, count = needs_of(view_of(Node("n", "1"), looks, AT), 20)
    assert len(found) == count
    return list(found)


def retrying(name: str, partition: int = 0) -> PartitionLook:
    error = f"Fetch {name}-{partition} on b: FENCED_LEADER_EPOCH"
    return look(name, partition, {"state": PartitionState.RETRYING, "error": error, "lag": 0})


def test_a_target_that_is_away_is_the_only_thing_with_all_else_folded() -> None:
    away = ClusterLook(Alias("b"), False, 75.0, "Connection refused")
    topics = [look(f"orders.{number}") for number in range(13)]
    beat = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=75.0, interval_s=1.0)
    (only,) = needs(source(*topics, report_age_s=75.0, clusters=[away]), groups(age_s=999.0), beat)
    assert (only.kind, only.name, only.more) == ("cluster", "b", "13 topics of a->b")
    assert only.state.error == "b does not answer since 03:45:25 UTC: Connection refused"


def test_a_source_that_is_away_concerns_the_flows_that_need_it() -> None:
    back = Flow(Alias("b"), Alias("a"))
    away = ClusterLook(Alias("a"), False, 75.0, "Connection refused")
    beats = HeartbeatLook(back, ConnectorName("beat"), "heartbeat", age_s=75.0, interval_s=1.0)
    (only,) = needs(source(look(), retrying("pages"), clusters=[away]), beats)
    assert (only.name, only.more) == ("a", "2 topics of a->b, b->a")


def test_what_has_another_reason_stays_beside_an_outage() -> None:
    away = ClusterLook(Alias("b"), False, 75.0, "Connection refused")
    archive = Flow(Alias("a"), Alias("archive"))
    refused = look(reported={"state": PartitionState.FAILED, "error": "too large", "lag": 2})
    found = needs(
        source(look(), report_age_s=75.0, clusters=[away]), source(refused, look("pages"), flow=archive)
    )
    assert [(it.kind, it.name) for it in found] == [("cluster", "b"), ("topic", "orders")]


def test_topics_that_are_refused_for_one_reason_are_one_thing() -> None:
    def refused(topic: str, word: TroubleWord, remedy: str) -> Trouble:
        cause = Cause.of(word, Subject.TOPIC, f"a.{topic}", f"create a.{topic}: no", remedy)
        return Trouble(cause, topic, f"a.{topic}", AT - 60, (0, 2))

    created = TroubleWord.NOT_CREATED
    troubles = [refused(f"t{number:04}", created, "set the factor") for number in range(5000)]
    troubles += [refused("bills", TroubleWord.THROTTLED, "")]
    first, second = needs(source(look(), troubles=troubles))
    assert (first.kind, first.name, first.more) == ("topic", "t0000", "and 4,999 more")
    assert first.state == (Word.ACTION_REQUIRED, 60.0, "not created: create a.t0000: no", "set the factor")
    assert (second.name, second.state.word) == ("bills", Word.THROTTLED)


def test_a_topic_that_other_flows_write_too_is_well() -> None:
    shared = Trouble(Cause(TroubleWord.SHARED, Subject.TOPIC, "2 flows write it"), "orders")
    assert needs(source(look(), troubles=[shared])) == []
    (only,) = needs(source(retrying("orders"), troubles=[shared]))
    assert (only.name, only.state.word) == ("orders", Word.RETRYING)


def test_topics_with_one_error_are_one_thing_whatever_their_names_and_numbers() -> None:
    found = needs(source(*(retrying(f"page-{number}", number % 3) for number in range(40)), look()))
    assert [(it.name, it.more) for it in found] == [("page-0", "and 39 more topics")]


def test_throttled_topics_are_one_thing() -> None:
    slow = [
        look(f"t{number}", 0, {"lag": 9}, lag_s=60.0, target_throttled=0.5 + number / 100)
        for number in range(4)
    ]
    (only,) = needs(source(*slow))
    assert (only.state.word, only.more) == (Word.THROTTLED, "and 3 more topics")
    assert only.state.advice.startswith("by b (")


def test_a_start_is_one_thing_with_what_it_waits_for() -> None:
    silent = [look(f"t{number}", 0, is_silent=True) for number in range(4)]
    (only,) = needs(source(*silent, begun_s=2.0))
    assert (only.kind, only.state.word, only.more) == ("flow", Word.STARTING, "4 topics")
    (only,) = needs(source(partitions=None, waits_for="Spark, which starts"))
    assert (only.state.word, only.state.advice) == (Word.STARTING, "waits for Spark, which starts")


def test_tasks_without_a_slot_of_spark_come_before_what_they_do_not_report() -> None:
    reason = "3 of 4 wait for a slot of Spark, and their partitions are not copied"
    cause = Cause(TroubleWord.WAITING, Subject.TASK, reason, "give Spark more cores")
    silent = [look(f"t{number}", 0, is_silent=True) for number in range(4)]
    seen = source(*silent, look(), begun_s=60.0, troubles=[Trouble(cause, "tasks", since=AT - 50)])
    (only,) = needs(seen)
    assert (only.kind, only.name) == ("task", "tasks")
    assert only.state == (Word.UNKNOWN, 50.0, f"waiting: {reason}", "give Spark more cores")
    (flow,) = view_of(Node("n", "1"), [seen], AT).flows
    assert flow.state.word is Word.UNKNOWN
    assert flow.state.error == f"tasks waiting: {reason}; give Spark more cores"


def test_a_mirror_that_was_stopped_is_one_thing() -> None:
    stopped = source(
        look(), look("pages"), trouble="stopped in order", is_observed=True, is_running=False, is_stopped=True
    )
    (only,) = needs(stopped)
    assert (only.kind, only.state.word, only.state.error) == ("connector", Word.STOPPED, "stopped in order")


def test_a_connector_that_was_paused_is_a_problem_and_one_that_writes_no_heartbeats_is_none() -> None:
    checkpoints = StandingLook(A_TO_B, ConnectorName("mcc"), "checkpoint", None, "paused")
    none = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", emits=False)
    (only,) = needs(source(look()), checkpoints, none)
    assert (only.kind, only.name, only.state.word) == ("connector", "mcc", Word.PAUSED)
    assert only.state.advice == "resume the connector to continue"


def test_what_follows_is_not_counted_however_many_topics_it_concerns() -> None:
    topics = [look(f"t{number:04}", lag_s=60.0) for number in range(600)]
    away = ClusterLook(Alias("b"), False, 75.0, "Connection refused")
    (only,) = needs(source(*topics, report_age_s=75.0, clusters=[away]))
    assert (only.name, only.more) == ("b", "600 topics of a->b")
    stopped = source(*topics, trouble="stopped", is_observed=True, is_running=False, is_stopped=True)
    (only,) = needs(stopped)
    assert (only.kind, only.state.word) == ("connector", Word.STOPPED)
