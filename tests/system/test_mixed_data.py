"""Every kind of data is copied unchanged over a stop and a restart."""

from contextlib import closing

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.record_batch import CODEC_MASK
from sparkmirror.storage.progress import PartitionState
from tests.support.broker_data import batches_on_disk, keyed, records
from tests.support.progress import Progress
from tests.support.topic_comparison import Comparison, compare_topic
from tests.system.dual_run import (
    APPEND_TIME_BOTH,
    BIG_BATCH,
    COMMITTED,
    MIXED,
    RESUMED_AT,
    TO_APPEND_TIME,
    Mirrored,
)


def compare(
    mirrored: Mirrored,
    topic: str,
    remote: str,
    *,
    read_committed: bool = False,
    starts: dict[int, int] | None = None,
) -> Comparison:
    source, target = (cluster.bootstrap_servers for cluster in mirrored.sides)
    compared = compare_topic(
        source, target, topic, remote, read_committed=read_committed, from_source_offsets=starts
    )
    assert compared.first_difference is None, str(compared.first_difference)
    assert compared.records > 0
    return compared


@pytest.mark.parametrize("topic", sorted({*MIXED, TO_APPEND_TIME, APPEND_TIME_BOTH} - {BIG_BATCH}))
def test_topic_is_the_same_on_both_clusters(mirrored: Mirrored, topic: str) -> None:
    compare(mirrored, topic, f"A.{topic}")


def test_copy_starts_at_a_stored_position_inside_a_batch(mirrored: Mirrored) -> None:
    compare(mirrored, BIG_BATCH, f"A.{BIG_BATCH}", starts=dict(RESUMED_AT))


@pytest.mark.parametrize("topic", COMMITTED)
def test_read_committed_leaves_aborted_records_out(mirrored: Mirrored, topic: str) -> None:
    compare(mirrored, topic, f"rc_{topic}", read_committed=True)


def test_read_uncommitted_copies_aborted_records_and_no_markers(mirrored: Mirrored) -> None:
    everything = len(keyed(mirrored.sides.target, "A.mixed.transactions"))
    committed = len(keyed(mirrored.sides.target, "rc_mixed.transactions"))
    assert 0 < committed < everything
    # Copied control batches would take offsets.
    for partition in range(2):
        copied = records(mirrored.sides.target, "A.mixed.transactions")
        offsets = [record.offset() for record in copied if record.partition() == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("topic", [TO_APPEND_TIME, APPEND_TIME_BOTH])
def test_target_stamps_records_if_configured(mirrored: Mirrored, topic: str) -> None:
    kinds = {record.timestamp()[0] for record in records(mirrored.sides.target, f"A.{topic}")}
    assert kinds == {confluent.TIMESTAMP_LOG_APPEND_TIME}


def test_batches_keep_their_codec_and_boundaries(mirrored: Mirrored) -> None:
    there, here = (
        [
            (batch.header.record_count, batch.header.attributes & CODEC_MASK, bytes(batch.data[61:]))
            for batch in batches_on_disk(cluster, topic, partition=1)
        ]
        for cluster, topic in zip(mirrored.sides, ("mixed.codecs", "A.mixed.codecs"), strict=True)
    )
    assert there == here


def test_every_partition_runs_without_lag(mirrored: Mirrored) -> None:
    with closing(Progress(mirrored.sides.target, "A")) as progress:
        reports = {source: report for source, report in progress.now().items() if source.topic in MIXED}
    assert {source.topic for source in reports} == set(MIXED)
    assert {report.state for report in reports.values()} == {PartitionState.RUNNING}
    assert {report.lag for report in reports.values()} == {0}
