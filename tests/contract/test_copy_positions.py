"""Where a copy goes on when its position, or the topic that it's about, exists no more."""

import re
from dataclasses import replace
from functools import partial

import pytest

from sparkmirror.connectors.source import CopySettings
from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnDataLoss, Reactions
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.contract.copying import Bench, Watch, remote, running
from tests.support.broker_data import append, create_topic, delete_records, delete_topic, numbered

TIMEOUT_S = 20.0
GONE_BEFORE, STORED, WRITTEN = 10, 4, 20


@pytest.fixture
def beheaded(bench: Bench, request: pytest.FixtureRequest) -> str:
    """A topic that lost the records after the stored position, and a partition that is well."""
    topic = "contract." + re.sub(r"\W+", "-", request.node.name)
    bench.create(topic, partitions=2)
    bench.source_has(topic, WRITTEN)
    bench.store_position(TopicPartition(topic, 0), STORED)
    delete_records(bench.source, topic, GONE_BEFORE)
    return topic


@pytest.mark.parametrize(
    ("policy", "first"), [(OffsetReset.EARLIEST, GONE_BEFORE), (OffsetReset.LATEST, WRITTEN)], ids=str
)
def test_a_position_out_of_range_is_reset(
    bench: Bench, watch: Watch, beheaded: str, policy: OffsetReset, first: int
) -> None:
    with running(bench.plan(TopicPartition(beheaded, 0), offset_reset=policy)):
        watch.await_progress(beheaded, lambda report: report.position == WRITTEN - 1)
        append(bench.source, beheaded, numbered(3, WRITTEN))
        bench.await_copied(beheaded, numbered(WRITTEN + 3 - first, first))
        report = watch.await_progress(beheaded, lambda report: report.position == WRITTEN + 2)
    lost = first - STORED - 1
    assert report.state is PartitionState.RUNNING
    assert report.lost == lost
    assert report.notice == (
        f"offsets {STORED + 1} to {first - 1} were gone from the source before they were copied "
        f"({lost} records); continuing from {first}"
    )


def test_data_loss_stops_the_partition_if_configured(bench: Bench, watch: Watch, beheaded: str) -> None:
    partition, well = TopicPartition(beheaded, 0), TopicPartition(beheaded, 1)
    expected = bench.source_has(beheaded, 5, partition=1)
    plan = bench.plan(partition, well)
    with running(replace(plan, settings=CopySettings(Reactions(OnDataLoss.FAIL)))):
        report = watch.await_progress(beheaded, lambda report: report.state is PartitionState.FAILED)
        bench.await_copied(beheaded, expected, partition=1)
    assert "on.data.loss is fail" in (report.error or "")
    assert (report.lost, bench.copied(beheaded), bench.position(partition)) == (0, [], STORED)
    with running(plan):  # the policy was changed: now it goes on
        bench.await_copied(beheaded, numbered(WRITTEN - GONE_BEFORE, GONE_BEFORE))


def test_a_position_out_of_range_is_an_error_where_there_is_no_policy(
    bench: Bench, watch: Watch, beheaded: str
) -> None:
    well, beheaded_partition = TopicPartition(beheaded, 1), TopicPartition(beheaded, 0)
    bench.store_position(well, 1)
    expected = bench.source_has(beheaded, 5, partition=1)[2:]
    with running(bench.plan(beheaded_partition, well, offset_reset=OffsetReset.NONE)):
        report = watch.await_progress(beheaded, lambda report: report.state is PartitionState.FAILED)
        assert report.error == f"{beheaded}-0 has no valid position and auto.offset.reset is none"
        bench.await_copied(beheaded, expected, partition=1)
    assert bench.copied(beheaded) == []
    assert bench.position(beheaded_partition) == STORED


def test_copy_continues_into_recreated_topics(bench: Bench, watch: Watch) -> None:
    """A shorter source is copied from its beginning; a target takes what comes next."""
    at_source, at_target = "contract.anew-source", "contract.anew-target"
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
