"""A batch that can't be copied stops its partition or becomes a dead letter, as `on.bad.batch` says."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import DEFAULT_REACTIONS, OnBadBatch
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.progress import PartitionState
from tests.contract.copying import DEAD_LETTERS, Bench, ProgressReports, remote, running
from tests.memory.server import MemoryServer
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import append, configure, latest, numbered
from tests.support.broker_requests import stored_batches

MB = 1 << 20
SKIP = DEFAULT_REACTIONS._replace(on_bad_batch=OnBadBatch.SKIP)
LARGE = (b"large", b"x" * 5000)


def dead_letter(bench: Bench, topic: str, first: int) -> dict[str, Any]:
    key = json.dumps([topic, 0, first], separators=(",", ":")).encode()
    letter = json.loads(latest(bench.target, DEAD_LETTERS)[key] or b"null")
    assert letter.pop("time") > 0
    return dict(letter)


def test_refused_record_is_skipped_and_reported_as_a_dead_letter(
    bench: Bench, watch: ProgressReports
) -> None:
    topic = "contract.skip-large"
    bench.create(topic, target_config={"max.message.bytes": "2000"})
    append(bench.source, topic, [*numbered(20), LARGE, *numbered(30, 20)])
    plan = replace(bench.plan(TopicPartition(topic, 0)), settings=CopySettings(SKIP))
    with running(plan):
        bench.await_copied(topic, numbered(50))
        report = watch.await_progress(topic, lambda report: report.position == 50)
    assert (report.incidents, report.lost, report.error) == ({"batch-skipped": 1}, 0, None)
    letter = dead_letter(bench, topic, 20)
    assert letter.pop("error") == f"produce to {remote(topic)}-0: MESSAGE_TOO_LARGE"
    assert letter == {"topic": topic, "partition": 0, "first": 20, "last": 20}
    with running(plan):  # the record is not sent again, and later records are copied
        append(bench.source, topic, numbered(5, 50))
        bench.await_copied(topic, numbered(55))


def test_a_small_batch_that_holds_too_much_stops_its_partition_alone(
    bench: Bench, watch: ProgressReports
) -> None:
    """The source stamps append times and the target does not, so that each batch is opened."""
    topic, in_order = "contract.holds-too-much", numbered(10)
    bench.create(topic, partitions=2)
    configure(bench.source, topic, {"message.timestamp.type": "LogAppendTime"})
    packed = {"compression.type": "zstd", "message.max.bytes": str(4 * MB)}
    append(bench.source, topic, in_order)
    append(bench.source, topic, [(b"zeros", bytes(2 * MB))], settings=packed)
    assert len(stored_batches(bench.source, topic)[-1].data) < MB // 100
    settings = CopySettings(DEFAULT_REACTIONS, decompressed_bytes_max=MB)
    plan = replace(bench.plan(TopicPartition(topic, 0), TopicPartition(topic, 1)), settings=settings)
    with running(plan):
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.FAILED)
        append(bench.source, topic, in_order, partition=1)
        bench.await_copied(topic, in_order, partition=1)
    assert "decompressed it has more than 1048576 bytes" in str(report.error)
    assert bench.copied(topic) == in_order


def damage_second_batch(cluster: AnyCluster, topic: str) -> None:
    if isinstance(cluster, MemoryServer):
        cluster.call(lambda: cluster.cluster.log(TopicPartition(topic, 0)).damage(1))
        return
    assert isinstance(cluster, LocalCluster)
    first_batch, second_batch, _ = stored_batches(cluster, topic)
    (segment,) = (cluster.brokers[0].data / f"{topic}-0").glob("*.log")
    with segment.open("r+b") as file:
        file.seek(len(first_batch.data) + len(second_batch.data) - 1)
        file.write(b"?")


@pytest.fixture(scope="module")
def corrupt(bench: Bench) -> str:
    """Three batches, the second of which does not match its checksum."""
    topic = "contract.corrupt"
    bench.create(topic)
    for first in (0, 10, 20):
        append(bench.source, topic, numbered(10, first))
    damage_second_batch(bench.source, topic)
    return topic


def test_corrupt_batch_is_reported_and_never_copied(
    bench: Bench, watch: ProgressReports, corrupt: str
) -> None:
    with running(bench.plan(TopicPartition(corrupt, 0))):
        report = watch.await_progress(corrupt, lambda report: report.state is PartitionState.FAILED)
        bench.await_copied(corrupt, numbered(10))
    assert f"{corrupt}-0 on near: offset 10: " in str(report.error)
    assert "on.bad.batch=skip leaves it out" in str(report.error)
    with running(replace(bench.plan(TopicPartition(corrupt, 0)), settings=CopySettings(SKIP))):
        bench.await_copied(corrupt, [*numbered(10), *numbered(10, 20)])
        report = watch.await_progress(corrupt, lambda report: report.position == 29)
    assert report.incidents == {"batch-skipped": 1}
    letter = dead_letter(bench, corrupt, 10)
    assert f"{corrupt}-0 on near: offset 10: " in letter.pop("error")
    assert letter == {"topic": corrupt, "partition": 0, "first": 10, "last": 19}
