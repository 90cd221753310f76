"""The copy loop resumes when its stored position is out of range or its topic was recreated."""

import re
from dataclasses import replace
from functools import partial

import pytest

from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnDataLoss, Reactions
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.contract.copying import Bench, ProgressReports, remote, running
from tests.support.broker_data import append, create_topic, delete_records, delete_topic, numbered

TIMEOUT_S = 20.0
GONE_BEFORE, STORED, WRITTEN = 10, 4, 20


@pytest.fixture
def trimmed(bench: Bench, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions, one of which has lost the records after its stored position."""
    topic = "contract." + re.sub(r"\W+", "-", request.node.name)
    bench.create(topic, partitions=2)
    bench.source_has(topic, WRITTEN)
    bench.store_position(TopicPartition(topic, 0), STORED)
    delete_records(bench.source, topic, GONE_BEFORE)
    return topic


@pytest.mark.parametrize("policy", [OffsetReset.EARLIEST, OffsetReset.LATEST], ids=str)
def test_a_partition_whose_position_is_out_of_range_continues_at_the_log_s_start(
    bench: Bench, watch: ProgressReports, trimmed: str, policy: OffsetReset
) -> None:
    first = GONE_BEFORE
    with running(bench.plan(TopicPartition(trimmed, 0), offset_reset=policy)):
        watch.await_progress(trimmed, lambda report: report.position == WRITTEN - 1)
        append(bench.source, trimmed, numbered(3, WRITTEN))
        bench.await_copied(trimmed, numbered(WRITTEN + 3 - first, first))
        report = watch.await_progress(trimmed, lambda report: report.position == WRITTEN + 2)
    lost = first - STORED - 1
    assert report.state is PartitionState.RUNNING
    assert report.lost == lost
    assert report.notice == (
        f"offsets {STORED + 1} to {first - 1} were gone from the source before they were copied "
        f"({lost} records); continuing from {first}"
    )


def test_data_loss_stops_the_partition_if_configured(
    bench: Bench, watch: ProgressReports, trimmed: str
) -> None:
    partition, well = TopicPartition(trimmed, 0), TopicPartition(trimmed, 1)
    expected = bench.source_has(trimmed, 5, partition=1)
    plan = bench.plan(partition, well)
    with running(replace(plan, settings=CopySettings(Reactions(OnDataLoss.FAIL)))):
        report = watch.await_progress(trimmed, lambda report: report.state is PartitionState.FAILED)
        bench.await_copied(trimmed, expected, partition=1)
    assert "on.data.loss is fail" in (report.error or "")
    assert (report.lost, bench.copied(trimmed), bench.position(partition)) == (0, [], STORED)
    with running(plan):  # after a change of the policy the copy continues
        bench.await_copied(trimmed, numbered(WRITTEN - GONE_BEFORE, GONE_BEFORE))


def test_position_out_of_range_stops_the_partition_without_a_reset_policy(
    bench: Bench, watch: ProgressReports, trimmed: str
) -> None:
    well, trimmed_partition = TopicPartition(trimmed, 1), TopicPartition(trimmed, 0)
    bench.store_position(well, 1)
    expected = bench.source_has(trimmed, 5, partition=1)[2:]
    with running(bench.plan(trimmed_partition, well, offset_reset=OffsetReset.NONE)):
        report = watch.await_progress(trimmed, lambda report: report.state is PartitionState.FAILED)
        assert report.error == f"{trimmed}-0 has no valid position and auto.offset.reset is none"
        bench.await_copied(trimmed, expected, partition=1)
    assert bench.copied(trimmed) == []
    assert bench.position(trimmed_partition) == STORED


def test_copy_continues_into_recreated_topics(bench: Bench, watch: ProgressReports) -> None:
    """A recreated source is copied from its beginning; a recreated target gets the next records."""
    at_source, at_target = "contract.recreated-source", "contract.recreated-target"
    before = {}
    for topic in (at_source, at_target):
        bench.create(topic)
        before[topic] = bench.source_has(topic, 9)
    with running(bench.plan(TopicPartition(at_source, 0), TopicPartition(at_target, 0))):
        for topic, records in before.items():
            bench.await_copied(topic, records)
        delete_topic(bench.source, at_source)
        delete_topic(bench.target, remote(at_target))
        bench.source_has(at_target, 4)
        for topic in before:
            watch.await_progress(topic, lambda report: report.state is PartitionState.RETRYING)
        create_topic(bench.source.bootstrap_servers, at_source)
        create_topic(bench.target.bootstrap_servers, remote(at_target))
        append(bench.source, at_source, numbered(4, 100))
        bench.await_copied(at_source, [*before[at_source], *numbered(4, 100)])
        bench.await_copied(at_target, numbered(4, 9))
        for topic, position in ((at_source, 3), (at_target, 12)):
            watch.await_progress(topic, partial(is_well_at, position))


def is_well_at(position: int, report: PartitionProgress) -> bool:
    return report.position == position and report.error is None
