"""A name alone does not tell a topic from its successor: topic ids do (KIP-516)."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnDataLoss, OnTopicRecreated, Reactions
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.contract.copying import Bench, ProgressReports, remote, running
from tests.support.broker_data import Keyed, append, create_topic, delete_topic, numbered

OLD, NEW, LATER = numbered(9), numbered(30, 100), numbered(4, 200)
"""Records of a source topic: more than before, so that the old position exists in the new topic too."""


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    """A topic that has been copied, with its position stored."""
    name = "contract." + re.sub(r"\W+", "-", request.node.name).strip("-")
    bench.create(name)
    append(bench.source, name, OLD)
    with running(bench.plan(TopicPartition(name, 0))):
        bench.await_copied(name, OLD)
    return name


def reaction(policy: OnTopicRecreated) -> Reactions:
    return Reactions(OnDataLoss.RECORD, policy)


def recreate_source(bench: Bench, topic: str) -> None:
    delete_topic(bench.source, topic)
    create_topic(bench.source.bootstrap_servers, topic)
    append(bench.source, topic, NEW)


def recreate_target(bench: Bench, topic: str) -> None:
    """With more records than before, of another producer."""
    delete_topic(bench.target, remote(topic))
    create_topic(bench.target.bootstrap_servers, remote(topic))
    append(bench.target, remote(topic), NEW)


@pytest.mark.parametrize("policy", [OnTopicRecreated.RECORD, OnTopicRecreated.RESTART])
def test_longer_source_recreated_while_stopped(
    bench: Bench, watch: ProgressReports, topic: str, policy: OnTopicRecreated
) -> None:
    recreate_source(bench, topic)
    with running(replace(bench.plan(TopicPartition(topic, 0)), settings=CopySettings(reaction(policy)))):
        bench.await_copied(topic, [*OLD, *NEW])
        report = watch.await_progress(topic, lambda report: report.position == len(NEW) - 1)
    assert report.incidents == {"source-recreated": 1}
    assert "everything before offset 9 was copied; continuing from offset 0 of the new one" in str(
        report.notice
    )


@pytest.mark.parametrize(
    ("policy", "copied"),
    [(OnTopicRecreated.RECORD, LATER), (OnTopicRecreated.RESTART, [*OLD, *LATER])],
    ids=["record", "restart"],
)
def test_longer_target_recreated_while_stopped(
    bench: Bench, watch: ProgressReports, topic: str, policy: OnTopicRecreated, copied: list[Keyed]
) -> None:
    recreate_target(bench, topic)
    with running(replace(bench.plan(TopicPartition(topic, 0)), settings=CopySettings(reaction(policy)))):
        append(bench.source, topic, LATER)
        bench.await_copied(topic, [*NEW, *copied])
        report = watch.await_progress(topic, lambda report: report.records == len(copied))
    assert report.incidents == {"target-recreated": 1}


@pytest.mark.parametrize("recreate", [recreate_source, recreate_target])
def test_recreated_topic_stops_its_partition_if_configured(
    bench: Bench,
    watch: ProgressReports,
    topic: str,
    recreate: Callable[[Bench, str], None],
) -> None:
    recreate(bench, topic)
    there = bench.copied(topic)
    plan = bench.plan(TopicPartition(topic, 0))
    with running(replace(plan, settings=CopySettings(reaction(OnTopicRecreated.FAIL)))):
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.FAILED)
    assert "on.topic.recreated is fail. Set it to record or restart, or reset the offset" in str(report.error)
    assert bench.copied(topic) == there


def test_start_without_the_topic_keeps_its_former_topic_id(
    bench: Bench, watch: ProgressReports, topic: str
) -> None:
    delete_topic(bench.source, topic)
    with running(bench.plan(TopicPartition(topic, 0))):
        watch.await_progress(topic, lambda report: report.state is PartitionState.RETRYING)
        create_topic(bench.source.bootstrap_servers, topic)
        append(bench.source, topic, NEW)
        bench.await_copied(topic, [*OLD, *NEW])


def test_topics_recreated_during_the_copy(bench: Bench, watch: ProgressReports, topic: str) -> None:
    """Reads and writes by id concern the old topics, or nothing."""
    with running(bench.plan(TopicPartition(topic, 0))):
        watch.await_progress(topic, lambda report: report.lag == 0)
        recreate_source(bench, topic)
        bench.await_copied(topic, [*OLD, *NEW])
        recreate_target(bench, topic)
        append(bench.source, topic, LATER)
        bench.await_copied(topic, [*NEW, *LATER])
        report = watch.await_progress(topic, lambda report: has_come(report, len(NEW) + len(LATER) - 1))
    assert report.incidents == {"source-recreated": 1, "target-recreated": 1}


def has_come(report: PartitionProgress, position: int) -> bool:
    return report.position == position and report.error is None
