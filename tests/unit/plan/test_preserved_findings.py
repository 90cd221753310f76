"""Findings of a plan about topics whose offsets are preserved."""

from dataclasses import replace

import pytest

from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.preserving import OnGap, OnMismatch, Preserving
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.plan.preserved_findings import preserved_topics
from sparkmirror.policies.replication import IdentityReplicationPolicy
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.storage.opposite_flow import OppositeFlow
from tests.support.progress_records import IDLE
from tests.unit.plan.test_plan_findings import cluster


@pytest.fixture
def survey(settings: MirrorSourceSettings) -> FlowSurvey:
    preserving = replace(settings, preserved_topics=("orders", "heartbeats"))
    return FlowSurvey(
        preserving,
        cluster("source"),
        cluster("target"),
        {"orders": 2, "heartbeats": 1, "others": 1},
        {"source.orders": 2},
        [(topic, f"source.{topic}") for topic in ("heartbeats", "orders", "others")],
        begins={TopicPartition("orders", 0): 0, TopicPartition("orders", 1): 50_000_000},
    )


def only(survey: FlowSurvey) -> Finding:
    (found,) = preserved_topics(survey)
    assert found.subject == "orders"
    return found


def test_the_cost_of_the_beginning(survey: FlowSurvey) -> None:
    found = only(survey)
    assert found.severity is Severity.NOTE
    assert "50,000,000 before its first records are filled first, 41.0 MB on each replica" in found.text
    assert "in about 10 s, for 8 s of the brokers' CPU" in found.text
    assert only(replace(survey, begins={})).text == "its offsets are preserved, from 0 on"


def test_a_beginning_that_takes_too_long(survey: FlowSurvey) -> None:
    copying = replace(survey.settings.copying, preserving=Preserving(fill_timeout_s=9.0))
    found = only(replace(survey, settings=replace(survey.settings, copying=copying)))
    assert found.severity is Severity.WARNS
    assert found.remedy.startswith("set offsets.preserve.fill.timeout.ms to 20000")


def test_a_topic_that_is_not_empty(survey: FlowSurvey) -> None:
    found = only(replace(survey, filled={"source.orders"}))
    assert found.severity is Severity.BLOCKS
    assert "source.orders holds records already" in found.text
    running = only(replace(survey, filled={"source.orders"}, begun={"orders"}))
    assert (running.severity, running.text) == (Severity.NOTE, "its offsets are preserved")


def said(topic: str, position: int | None, error: str | None = None) -> OppositeFlow:
    report = replace(IDLE, source=TopicPartition(topic, 1), position=position, error=error)
    return OppositeFlow({(report.connector, report.source): report})


def test_what_the_opposite_flow_has_copied_stands_by(survey: FlowSurvey) -> None:
    kept = replace(survey, mirrored=[("orders", "orders")], filled={"orders"}, opposite=said("orders", 7))
    found = only(kept)
    assert (found.severity, found.text) == (
        Severity.NOTE,
        "standby: target->source has copied it from target: it waits for a failback",
    )
    assert only(replace(kept, opposite=said("others", 7))).severity is Severity.BLOCKS
    renamed = replace(survey, filled={"source.orders"}, opposite=said("orders", 7))
    assert only(renamed).severity is Severity.BLOCKS


def test_a_direction_of_a_pair_waits_for_what_the_opposite_flow_reports(survey: FlowSurvey) -> None:
    flow, identity = survey.settings.flow, IdentityReplicationPolicy()
    back = replace(survey.settings, flow=Flow(flow.target, flow.source), policy=identity)
    pair = replace(survey.settings, policy=identity, opposite=back)
    kept = replace(survey, settings=pair, mirrored=[("orders", "orders")], filled={"orders"})
    for unsaid in (OppositeFlow(), said("orders", None)):
        found = only(replace(kept, opposite=unsaid))
        assert (found.severity, found.text) == (
            Severity.NOTE,
            "it waits for the first position that target->source reports, which may have copied it",
        )
    refused = said("orders", None, "offsets can't be preserved: orders-1: it holds others")
    assert only(replace(kept, opposite=refused)).severity is Severity.BLOCKS
    assert only(replace(kept, settings=replace(pair, opposite=None))).severity is Severity.BLOCKS


def test_a_topic_that_somebody_else_writes(survey: FlowSurvey) -> None:
    why = "offsets can't be preserved: source.orders-1: another producer (producer id 7) has written offset 5"
    stopped = {TopicPartition("orders", 1): why, TopicPartition("others", 0): "it is full"}
    found = only(replace(survey, begun={"orders"}, stopped=stopped))
    assert found.severity is Severity.WARNS
    assert found.text == f"its offsets are preserved, but 1 partition stopped: {why}"


def test_what_continues_with_other_offsets(survey: FlowSurvey) -> None:
    preserving = Preserving(on_mismatch=OnMismatch.CONTINUE_TRANSLATED)
    copying = replace(survey.settings.copying, preserving=preserving)
    going_on = replace(survey, settings=replace(survey.settings, copying=copying), filled={"source.orders"})
    found = only(going_on)
    assert found.severity is Severity.WARNS
    assert "will be translated" in found.text
    since = replace(going_on, begun={"orders"}, translated=[TopicPartition("orders", 1)])
    assert only(since).text.startswith("its offsets are translated in 1 partition,")


def test_a_topic_that_is_copied_with_other_offsets_already(survey: FlowSurvey) -> None:
    found = only(replace(survey, begun={"orders"}, shifted=[TopicPartition("orders", 1)]))
    assert found.severity is Severity.BLOCKS
    assert found.text == "it is copied with other offsets already, in 1 partition"
    assert found.remedy.startswith("sparkmirror offsets preserve recreates source.orders")


def test_a_long_gap_is_said_with_its_count_and_time(survey: FlowSurvey) -> None:
    begun = replace(survey, begun={"orders"}, lost={TopicPartition("orders", 1): 600_000})
    _, found = preserved_topics(begun)
    assert found.severity is Severity.WARNS
    assert "up to 600,000 offsets of a partition are gone" in found.text
    assert "in about 1,200 s" in found.text
    preserving = Preserving(on_gap=OnGap.STOP)
    copying = replace(survey.settings.copying, preserving=preserving)
    stopping = replace(begun, settings=replace(survey.settings, copying=copying))
    assert [found.severity for found in preserved_topics(stopping)] == [Severity.NOTE, Severity.BLOCKS]
    short = only(replace(begun, lost={TopicPartition("orders", 1): 600}))
    assert short.text == "its offsets are preserved"


def test_the_cost_of_what_compaction_has_removed(survey: FlowSurvey) -> None:
    holes = {TopicPartition("orders", 0): 1_000_000, TopicPartition("orders", 1): 200_000}
    with_right = replace(survey, holes=holes)
    without = replace(with_right, target=replace(survey.target, operations=frozenset()))
    beginning, of_holes = preserved_topics(without)
    assert beginning == only(survey)
    assert of_holes.severity is Severity.WARNS
    assert "about 1,200,000 of the offsets to copy have no record, by a part of its log" in of_holes.text
    assert "93.6 MB on each replica: in about 2,000 s, at 500 a second" in of_holes.text
    assert of_holes.remedy.startswith("give ALTER on the cluster target, or leave orders out")
    (_, of_holes) = preserved_topics(with_right)
    assert "in about 1,000 s, at 1,000 a second" in of_holes.text
    few = replace(without, holes={TopicPartition("orders", 0): 1000})
    (_, of_holes) = preserved_topics(few)
    assert of_holes.severity is Severity.NOTE
    _, left = preserved_topics(replace(few, begun={"orders"}))
    assert left == of_holes, "also of what a mirror has not reached yet"
    assert "offsets.gap" not in of_holes.text


def test_where_a_gap_between_records_stops_a_partition(survey: FlowSurvey) -> None:
    copying = replace(survey.settings.copying, preserving=Preserving(on_gap=OnGap.STOP))
    stopping = replace(survey, settings=replace(survey.settings, copying=copying))
    (_, of_holes) = preserved_topics(replace(stopping, holes={TopicPartition("orders", 0): 1000}))
    assert "a partition stops where more than 450,000 are missing in a row" in of_holes.text


def test_nothing_is_said_where_nothing_is_preserved(survey: FlowSurvey) -> None:
    off = replace(survey.settings, preserved_topics=None)
    assert list(preserved_topics(replace(survey, settings=off))) == []
