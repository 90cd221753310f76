"""A source lost what was read of it, as by an unclean leader election: leader epochs say so (KIP-101)."""

from contextlib import closing
from dataclasses import replace

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnDataLoss, Reactions
from sparkmirror.domain.log_identity import LogIdentity
from sparkmirror.kafka.metadata import read_metadata, request_metadata
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.storage.positions import Position, position_record
from sparkmirror.storage.progress import PartitionState
from tests.contract.asking import asking
from tests.contract.copying import CONNECTOR, POSITIONS, SOURCE, Bench, Watch, connection, running
from tests.system.broker_data import append, numbered

TOPIC = "contract.truncated"
PARTITION = TopicPartition(TOPIC, 0)
COMMON, READ, ANEW = 50, 60, 20
"""Offsets below COMMON are of the first epoch. A reader saw READ of it; then ANEW records of another came."""


@pytest.fixture(scope="module")
def truncated(bench: Bench, frail_cluster: LocalCluster) -> Bench:
    made = Bench(frail_cluster, bench.target)
    made.create(TOPIC)
    append(frail_cluster, TOPIC, numbered(COMMON))
    frail_cluster.stop_broker(0)
    frail_cluster.start_broker(0)
    append(frail_cluster, TOPIC, numbered(ANEW, COMMON))
    return made


def store_position(truncated: Bench) -> None:
    """Of a reader that saw records of the first epoch up to READ, which nobody has any more."""
    topic_id = read_metadata(connection(truncated.source), [TOPIC]).topic_ids[TOPIC]
    position = Position(READ - 1, logs=LogIdentity(topic_id, 0))
    with closing(TopicWriter(connection(truncated.target))) as writer:
        writer.write(POSITIONS, [position_record(CONNECTOR, SOURCE, PARTITION, position)])


def test_the_broker_says_where_its_log_parts_from_what_was_read(truncated: Bench) -> None:
    with asking(truncated.source) as asker:
        fetched = asker.fetch_one(PARTITION, READ, read_epoch=0)
        assert (fetched.error, fetched.diverged_at, len(fetched.records)) == (0, COMMON, 0)
        leader = request_metadata(asker.connection, [TOPIC], 10).leaders[PARTITION]
        assert asker.fetch_one(PARTITION, READ, read_epoch=leader.epoch).diverged_at is None


def test_what_came_instead_is_copied_and_the_loss_is_said(truncated: Bench, watch: Watch) -> None:
    store_position(truncated)
    plan = truncated.plan(PARTITION)
    with running(replace(plan, offset_syncs=None, reactions=Reactions(OnDataLoss.FAIL))):
        report = watch.await_progress(TOPIC, lambda report: report.state is PartitionState.FAILED)
        assert "on.data.loss is fail" in str(report.error)
        assert truncated.copied(TOPIC) == []
    with running(replace(plan, offset_syncs=None)):
        truncated.await_copied(TOPIC, numbered(ANEW, COMMON))
        report = watch.await_progress(TOPIC, lambda report: report.position == COMMON + ANEW - 1)
    assert report.incidents == {"source-truncated": 1}
    assert "offsets 50 to 59 were copied, and the source has lost them since" in str(report.notice)
    assert "10 records are on the target only; going on from 50" in str(report.notice)
