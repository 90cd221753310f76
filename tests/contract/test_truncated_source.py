"""A truncated source, as after an unclean leader election, is detected by leader epochs (KIP-101)."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import LogIdentity, TopicPartition
from sparkmirror.domain.incidents import OnDataLoss, Reactions
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.metadata import request_metadata
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.positions import Position, position_record, read_positions
from sparkmirror.storage.progress import PartitionState
from tests.contract.copying import CONNECTOR, POSITIONS, SOURCE, Bench, ProgressReports, running
from tests.support.broker_data import append, numbered
from tests.support.broker_requests import asking
from tests.support.connections import connection

TOPIC = "contract.truncated"
PARTITION = TopicPartition(TOPIC, 0)
WHOLE = TopicPartition("contract.not-truncated", 0)
COMMON, READ, REWRITTEN = 50, 60, 20
"""A reader read READ records of the first epoch; COMMON remain, and REWRITTEN of another epoch follow."""


@pytest.fixture(scope="module")
def truncated(real_bench: Bench, frail_cluster: LocalCluster) -> Bench:
    made = Bench(frail_cluster, real_bench.target)
    for topic in (TOPIC, WHOLE.topic):
        made.create(topic)
        append(frail_cluster, topic, numbered(COMMON))
    with running(replace(made.plan(WHOLE), offset_syncs=None)):
        made.await_copied(WHOLE.topic, numbered(COMMON))
    frail_cluster.stop_broker(0)
    frail_cluster.start_broker(0)
    append(frail_cluster, TOPIC, numbered(REWRITTEN, COMMON))
    return made


@pytest.fixture(scope="module")
def watch(truncated: Bench) -> Iterator[ProgressReports]:
    made = ProgressReports(truncated)
    yield made
    made.close()


def store_position(truncated: Bench) -> None:
    """Store the position of a reader that had read up to READ in the first epoch."""
    topic_id = read_metadata(connection(truncated.source), [TOPIC]).topic_ids[TOPIC]
    write_position(truncated, PARTITION, Position(READ - 1, logs=LogIdentity(topic_id, 0)))


def write_position(truncated: Bench, partition: TopicPartition, position: Position) -> None:
    with closing(TopicWriter(connection(truncated.target))) as writer:
        writer.write(POSITIONS, [position_record(CONNECTOR, SOURCE, partition, position)])


def stored_position(truncated: Bench, partition: TopicPartition) -> Position:
    positions = connection(truncated.target)
    return read_positions(positions, POSITIONS, CONNECTOR, SOURCE, [partition])[partition]


def test_broker_reports_where_its_log_diverges(truncated: Bench) -> None:
    with asking(truncated.source) as asker:
        fetched = asker.fetch_one(PARTITION, READ, read_epoch=0)
        assert (fetched.error, fetched.diverged_at, len(fetched.records)) == (0, COMMON, 0)
        leader = request_metadata(asker.connection, [TOPIC], 10).leaders[PARTITION]
        assert asker.fetch_one(PARTITION, READ, read_epoch=leader.epoch).diverged_at is None


def test_records_after_truncation_are_copied_and_the_loss_is_reported(
    truncated: Bench, watch: ProgressReports
) -> None:
    store_position(truncated)
    plan = truncated.plan(PARTITION)
    with running(replace(plan, offset_syncs=None, settings=CopySettings(Reactions(OnDataLoss.FAIL)))):
        report = watch.await_progress(TOPIC, lambda report: report.state is PartitionState.FAILED)
        assert "on.data.loss is fail" in str(report.error)
        assert truncated.copied(TOPIC) == []
    with running(replace(plan, offset_syncs=None)):
        truncated.await_copied(TOPIC, numbered(REWRITTEN, COMMON))
        report = watch.await_progress(TOPIC, lambda report: report.position == COMMON + REWRITTEN - 1)
    assert report.incidents == {"source-truncated": 1}
    assert "offsets 50 to 59 were copied, and the source has lost them since" in str(report.notice)
    assert "10 records are on the target only; continuing from 50" in str(report.notice)


def test_read_back_batches_may_have_a_later_leader_epoch_than_the_position(
    truncated: Bench, watch: ProgressReports
) -> None:
    """The source still has these records: a log that another leader continues has lost nothing."""
    topic = WHOLE.topic
    plan = replace(truncated.plan(WHOLE), offset_syncs=None)
    before = stored_position(truncated, WHOLE)
    append(truncated.source, topic, numbered(REWRITTEN, COMMON))
    with running(plan):
        truncated.await_copied(topic, numbered(COMMON + REWRITTEN))
    after = stored_position(truncated, WHOLE)
    assert (before.offset, after.offset) == (COMMON - 1, COMMON + REWRITTEN - 1)
    assert before.logs.source_epoch < after.logs.source_epoch
    write_position(truncated, WHOLE, before)  # as after a crash
    append(truncated.source, topic, numbered(REWRITTEN, COMMON + REWRITTEN))
    with running(plan):
        truncated.await_copied(topic, numbered(COMMON + 2 * REWRITTEN))
        report = watch.await_progress(topic, lambda report: report.position == COMMON + 2 * REWRITTEN - 1)
    assert (report.incidents, report.notice) == ({}, None)
    assert stored_position(truncated, WHOLE).logs == after.logs
