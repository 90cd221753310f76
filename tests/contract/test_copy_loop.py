"""The copy loop between two clusters: copied records, state topics, offset syncs, stop and resume."""

from collections.abc import Callable

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync, parse_offset_sync
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.contract.copying import SOURCE, SYNCS, Bench, ProgressReports, message_fields, remote, running
from tests.support.broker_data import append, create_topic, numbered, records
from tests.support.connections import connection
from tests.support.traffic import flowing


def test_every_record_arrives_and_state_topics_show_it(bench: Bench, watch: ProgressReports) -> None:
    topic = "contract.copied"
    bench.create(topic, partitions=3)
    for number, codec in enumerate(("none", "lz4", "zstd")):
        append(bench.source, topic, numbered(200), partition=number, settings={"compression.type": codec})
    partitions = [TopicPartition(topic, number) for number in range(3)]
    with running(bench.plan(*partitions)):
        for partition in partitions:
            report = watch.await_progress(topic, caught_up, partition=partition.partition)
            assert (report.records, report.position, report.lag) == (200, 199, 0)
            assert (report.task, report.job_epoch, report.target_topic) == (3, 7, remote(topic))
            assert sum(report.latency.counts.values()) == 200
        append(bench.source, topic, numbered(5, 200))
        watch.await_progress(topic, lambda report: report.position == 204)
    originals, copies = (
        [(record.partition(), record.offset(), *message_fields(record)) for record in records(at, name)]
        for at, name in ((bench.source, topic), (bench.target, remote(topic)))
    )
    assert len(originals) == 605
    assert copies == originals
    assert [bench.position(partition) for partition in partitions] == [204, 199, 199]
    # The last five records do not require an offset sync, but an orderly stop writes one.
    lasts = (204, 199, 199)
    assert [newest_sync(bench, partition) for partition in partitions] == [
        RunSync(OffsetSync(partition, last, last), last + 1)
        for partition, last in zip(partitions, lasts, strict=True)
    ]


def test_sync_covers_the_run_that_earlier_tasks_copied(bench: Bench, watch: ProgressReports) -> None:
    topic = "contract.runs"
    partition = TopicPartition(topic, 0)
    bench.create(topic)
    copied = 0
    for more in (50, 10, 15):
        bench.source_has(topic, more)
        copied += more
        with running(bench.plan(partition)):
            watch.await_progress(topic, stands_at(copied - 1))
        assert newest_sync(bench, partition) == RunSync(OffsetSync(partition, copied - 1, copied - 1), copied)
    append(bench.target, remote(topic), numbered(1))  # a record of another producer splits the run
    bench.source_has(topic, 5)
    with running(bench.plan(partition)):
        watch.await_progress(topic, stands_at(79))
    assert newest_sync(bench, partition) == RunSync(OffsetSync(partition, 79, 80), 5)


def test_orderly_stops_during_a_copy_leave_no_gap_and_no_duplicate(
    bench: Bench, watch: ProgressReports
) -> None:
    topic = "contract.stopped"
    bench.create(topic)
    plan = bench.plan(TopicPartition(topic, 0))
    copied = [0]
    with flowing(bench.source, topic):
        for _ in range(2):
            with running(plan):
                watch.await_progress(topic, lambda report: (report.position or 0) > copied[-1] + 20)
            copied.append(len(bench.copied(topic)))
            assert bench.position(TopicPartition(topic, 0)) == copied[-1] - 1
    assert copied[0] < copied[1] < copied[2]
    with running(plan):
        bench.await_copied(topic, bench.written(topic))


def test_copy_starts_at_a_position_inside_a_batch(bench: Bench) -> None:
    topic = "contract.inside"
    bench.create(topic)
    expected = bench.source_has(topic, 30)
    bench.store_position(TopicPartition(topic, 0), 11)
    with running(bench.plan(TopicPartition(topic, 0))):
        bench.await_copied(topic, expected[12:])
    assert bench.position(TopicPartition(topic, 0)) == 29


def test_copy_waits_for_topics_that_are_created_later(bench: Bench, watch: ProgressReports) -> None:
    no_target, no_source = "contract.no-target", "contract.no-source"
    create_topic(bench.source.bootstrap_servers, no_target)
    create_topic(bench.target.bootstrap_servers, remote(no_source))
    expected = bench.source_has(no_target, 10)
    with running(bench.plan(TopicPartition(no_target, 0), TopicPartition(no_source, 0))):
        for topic, where in (
            (no_target, f"{remote(no_target)}-0 on far"),
            (no_source, f"{no_source}-0 on {SOURCE}"),
        ):
            report = watch.await_progress(topic, lambda report: report.error is not None)
            assert report.state is PartitionState.RETRYING
            assert report.error == f"{where}: UNKNOWN_TOPIC_OR_PARTITION"
        create_topic(bench.target.bootstrap_servers, remote(no_target))
        create_topic(bench.source.bootstrap_servers, no_source)
        bench.await_copied(no_target, expected)
        bench.await_copied(no_source, bench.source_has(no_source, 10))
        for topic in (no_target, no_source):
            watch.await_progress(topic, caught_up)


def stands_at(offset: int) -> Callable[[PartitionProgress], bool]:
    return lambda report: report.position == offset


def caught_up(report: PartitionProgress) -> bool:
    return report.state is PartitionState.RUNNING and report.lag == 0 and report.records > 0


def newest_sync(bench: Bench, partition: TopicPartition) -> RunSync:
    newest = None
    for record in read_topic(connection(bench.source), SYNCS):
        parsed = parse_offset_sync(record)
        assert parsed is not None
        if parsed.sync.topic_partition == partition:
            newest = parsed
    assert newest is not None, f"no sync of {partition}"
    return newest
