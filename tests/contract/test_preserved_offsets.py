"""Offsets are preserved: every record has that of its source, on brokers in memory and real ones."""

import re
import sqlite3
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.preserve.log_start_watch import CHECK_INTERVAL_S, LogStartWatch
from sparkmirror.copy.preserve.preserved_start import Beginning, PreservedStarts
from sparkmirror.copy.resume.claims import transactional_id_of
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import DisconnectedError, FencedError, RetriableError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.incidents import IncidentKind
from sparkmirror.domain.preserving import OnMismatch, Preserving
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import EARLIEST, list_offsets
from sparkmirror.kafka.transactions.bulk_markers import Bulk, coordinator_epoch, write_markers
from sparkmirror.kafka.transactions.control_markers import ControlMarkers, Gap
from sparkmirror.kafka.transactions.fencing import Fencing
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.offset_sync_topic import OffsetSyncsReader
from sparkmirror.storage.positions import Position
from sparkmirror.storage.progress import PartitionState
from sparkmirror.verify.range_comparison import Sides, verify_range
from sparkmirror.verify.range_planning import MirroredPartition, plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.contract.copying import (
    SOURCE,
    SYNCS,
    Bench,
    ProgressReports,
    connected,
    message_fields,
    remote,
    running,
    store,
    stored,
)
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import (
    Keyed,
    append,
    create_topic,
    delete_records,
    end_offsets,
    move_log_starts,
    numbered,
    records,
)
from tests.support.broker_requests import stored_batches
from tests.support.connections import connection
from tests.support.proxy import Api, Disruption, Moment, proxied
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
Placed = tuple[int, tuple[object, ...]]


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    name = "preserved." + re.sub(r"\W+", "-", request.node.name)
    bench.create(name)
    return name


def plan_of(bench: Bench, topic: str, **consumer: object) -> TaskPlan:
    plan = bench.plan(TopicPartition(topic, 0), **consumer)
    partitions = tuple(replace(partition, preserves_offsets=True) for partition in plan.partitions)
    return replace(plan, partitions=partitions)


def placed(cluster: AnyCluster, topic: str, *, read_committed: bool = True) -> list[Placed]:
    """Each record with its offset."""
    with TopicReader(cluster.bootstrap_servers, topic, read_committed=read_committed) as reader:
        return [(record.offset() or 0, message_fields(record)) for record in reader.read(0)]


def verified(bench: Bench, topic: str, *, preserves_offsets: bool) -> Comparison:
    """Compare as `sparkmirror verify` does."""
    consumer = ConsumerSettings(connection(bench.source), read_committed=True)
    sides = Sides(Flow(SOURCE, Alias("far")), consumer, ConsumerSettings(connection(bench.target)))
    copied = CopyPartition(TopicPartition(topic, 0), remote(topic), preserves_offsets=preserves_offsets)
    mirrored = MirroredPartition(copied, stored(bench, topic))
    return sum(map(verify_range, plan_ranges(sides, [mirrored])), Comparison())


def await_same(bench: Bench, topic: str, count: int) -> None:
    wanted: list[Placed] = []
    seen: list[Placed] = []

    def are_there() -> bool:
        if starts(bench, topic)[0] > starts(bench, topic)[1]:
            return False  # the beginning is being filled
        wanted[:] = placed(bench.source, topic)  # the last commit shows when its marker is written
        seen[:] = placed(bench.target, remote(topic))
        return len(seen) >= count and len(wanted) >= count

    await_value(are_there, WAIT_S, lambda: f"{len(seen)} of {count} records: {seen[-3:]}")
    assert len(wanted) == count
    assert seen == wanted == placed(bench.target, remote(topic), read_committed=False)


def await_end(bench: Bench, topic: str, end: int = 0) -> None:
    """The target ends where the source does, not before `end`: a commit returns before its marker."""

    def is_reached() -> bool:
        here, there = ends(bench, topic)
        return here == there >= end

    await_value(is_reached, WAIT_S, lambda: f"{ends(bench, topic)}")


def starts(bench: Bench, topic: str) -> tuple[int, int]:
    found = []
    for cluster, name in ((bench.source, topic), (bench.target, remote(topic))):
        with TopicReader(cluster.bootstrap_servers, name) as reader:
            found.append(reader.offsets(0)[0])
    return found[0], found[1]


def ends(bench: Bench, topic: str) -> tuple[int, int]:
    source = end_offsets(bench.source, [topic])[TopicPartition(topic, 0)]
    return source, end_offsets(bench.target, [remote(topic)])[TopicPartition(remote(topic), 0)]


def transact(cluster: AnyCluster, topic: str, some: list[Keyed], *, commits: bool = True) -> None:
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"app-{topic}", "log_level": 0}
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for key, value in some:
        producer.produce(topic, value, key, partition=0)
    producer.flush(WAIT_S)
    if commits:
        producer.commit_transaction(WAIT_S)
    else:
        producer.abort_transaction(WAIT_S)


class OffsetsInSqlite:
    """An application that stores the records that it has read and its offset in one transaction."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file)
        self._database.execute("CREATE TABLE seen (next_offset INTEGER, value BLOB)")

    @property
    def seen(self) -> list[bytes]:
        return [value for (value,) in self._database.execute("SELECT value FROM seen ORDER BY next_offset")]

    def read(self, bootstrap_servers: str, topic: str, count: int) -> None:
        """The next records, from the stored offset on, or from the beginning."""
        (start,) = self._database.execute("SELECT max(next_offset) FROM seen").fetchone()
        with TopicReader(bootstrap_servers, topic, read_committed=True) as reader, self._database:
            for record in islice(reader.read(0, start), count):
                self._database.execute(
                    "INSERT INTO seen VALUES (?, ?)", ((record.offset() or 0) + 1, record.value())
                )

    def close(self) -> None:
        self._database.close()


def sync_history(bench: Bench, topic: str, *, is_turned: bool = False) -> SyncHistory:
    turned = (lambda sync: sync.reversed(topic)) if is_turned else None
    with closing(OffsetSyncsReader(connection(bench.source), SYNCS, turned=turned)) as reader:
        reader.catch_up(WAIT_S)
        return reader.histories[TopicPartition(topic, 0)]


def test_a_log_from_0_on_is_copied_as_it_is(bench: Bench, topic: str) -> None:
    append(bench.source, topic, numbered(19))
    headers: list[tuple[str, str | bytes | None]] = [("name", b"value"), ("none", None)]
    producer = confluent.Producer({"bootstrap.servers": bench.source.bootstrap_servers})
    producer.produce(topic, b"19", b"with headers", partition=0, timestamp=WRITTEN_MS, headers=headers)
    assert not producer.flush(WAIT_S)
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 20)
        append(bench.source, topic, numbered(10, 20))
        await_same(bench, topic, 30)
    assert not [b for b in stored_batches(bench.target, remote(topic)) if b.header.attributes & CONTROL]


def test_a_log_that_starts_later_begins_there(bench: Bench, topic: str) -> None:
    append(bench.source, topic, numbered(20))
    delete_records(bench.source, topic, 13)
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 7)
    append(bench.source, topic, numbered(5, 20))
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 12)


def test_the_logs_of_many_partitions_are_looked_at_together(real_bench: Bench) -> None:
    topic, count = "preserved.many", 40
    real_bench.create(topic, partitions=count)
    partitions = [TopicPartition(topic, number) for number in range(count)]
    for number in range(count):
        append(real_bench.source, topic, numbered(2), partition=number)
    move_log_starts(real_bench.source, dict.fromkeys(partitions, 1))
    plan = real_bench.plan(*partitions)
    preserved = tuple(replace(partition, preserves_offsets=True) for partition in plan.partitions)
    plan = replace(plan, partitions=preserved)

    def copy(plan: TaskPlan, records: int) -> None:
        with running(plan):
            await_value(
                lambda: set(end_offsets(real_bench.target, [remote(topic)]).values()) == {records},
                WAIT_S,
                lambda: f"{end_offsets(real_bench.target, [remote(topic)])}",
            )

    copy(plan, 2)
    for number in range(count):
        append(real_bench.source, topic, numbered(1, 2), partition=number)
    brokers = [connection(each).bootstrap_servers[0] for each in (real_bench.source, real_bench.target)]
    with proxied(brokers[0]) as (source,), proxied(brokers[1]) as (target,):
        copy(connected(plan, *(ConnectionSettings((each.address,)) for each in (source, target))), 3)
        assert source.figures.opened < count / 2
        assert target.figures.opened < count / 2


def test_gaps_of_transactions_are_filled(bench: Bench, topic: str) -> None:
    append(bench.source, topic, numbered(3))
    transact(bench.source, topic, numbered(4, 3))
    transact(bench.source, topic, numbered(6, 100), commits=False)
    with running(plan_of(bench, topic, read_committed=True)):
        await_same(bench, topic, 7)
        await_end(bench, topic)
        for number in range(3):
            transact(bench.source, topic, numbered(2, 7 + 2 * number))
        await_same(bench, topic, 13)
        await_end(bench, topic)
    append(bench.source, topic, numbered(3, 13))
    with running(plan_of(bench, topic, read_committed=True)):
        await_same(bench, topic, 16)


def test_a_long_gap_is_filled_in_bulk(bench: Bench, topic: str) -> None:
    append(bench.source, topic, numbered(3))
    transact(bench.source, topic, numbered(12_500, 100), commits=False)
    append(bench.source, topic, numbered(3, 3))
    with running(plan_of(bench, topic, read_committed=True)):
        await_same(bench, topic, 6)
        await_end(bench, topic)
    log = stored_batches(bench.target, remote(topic))
    markers = [batch.header for batch in log if batch.header.attributes & CONTROL]
    assert len(markers) == 12_501
    assert len({(header.producer_id, header.producer_epoch) for header in markers}) == 1


def coordinated(bench: Bench, topic: str) -> int:
    """Count the entries of the target's coordinators about the transactional ids of this topic."""
    noted = records(bench.target, "__transaction_state")
    return sum(topic.encode() in (record.key() or b"") for record in noted)


def test_markers_behind_the_first_one_need_no_coordinator(real_bench: Bench) -> None:
    """Which could repeat them when it moves; where the right to write them directly is there."""
    topic = "preserved.directly"
    real_bench.create(topic)
    transact(real_bench.source, topic, numbered(2))
    with running(plan_of(real_bench, topic, read_committed=True)):
        await_same(real_bench, topic, 2)
        await_end(real_bench, topic)
        before = coordinated(real_bench, topic)
        assert before
        for number in range(1, 6):
            transact(real_bench.source, topic, numbered(2, 2 * number), commits=number != 3)
            await_end(real_bench, topic)
        assert coordinated(real_bench, topic) == before
    assert len(placed(real_bench.target, remote(topic))) == 10


def test_markers_whose_answer_is_lost_are_not_sent_again(target_cluster: LocalCluster) -> None:
    """The broker appends what it gets twice, twice, and the connection was open before."""
    topic = "preserved.lost-answer"
    at = TopicPartition(topic, 0)
    create_topic(target_cluster.bootstrap_servers, topic)
    with proxied((HOST, target_cluster.brokers[0].port)) as (proxy,):
        settings = ConnectionSettings((proxy.address,), request_timeout_s=WAIT_S)
        with closing(ControlMarkers(settings)) as markers, closing(Fencing(settings)) as fencing:
            own = fencing.claim([topic])[topic]
            assert isinstance(own, ProducerId)
            assert markers.fill([Gap(topic, own, at, 0, 2, is_fenced=False)]) == {at: 1}
            assert markers.fill([Gap(topic, own, at, 1, 2)]) == {at: 2}
            proxy.disrupt_next(Api.WRITE_TXN_MARKERS, Moment.ANSWER_DUE, Disruption.RESET)
            assert isinstance(markers.fill([Gap(topic, own, at, 2, 3)])[at], DisconnectedError)
            proxy.restore()
    assert end_offsets(target_cluster, [topic]) == {at: 3}


def test_a_gap_is_not_filled_by_an_attempt_with_a_successor(bench: Bench, topic: str) -> None:
    """Though its marker is in the log, and no other one yet."""
    settings, at = connection(bench.target), TopicPartition(remote(topic), 0)
    with closing(ControlMarkers(settings)) as markers, closing(Fencing(settings)) as fencing:
        own = fencing.claim([topic])[topic]
        assert isinstance(own, ProducerId)
        assert markers.fill([Gap(topic, own, at, 0, 1, is_fenced=False)]) == {at: 1}
        assert markers.fill([Gap(topic, own, at, 1, 3)]) == {at: 3}
        assert isinstance(fencing.claim([topic])[topic], ProducerId)
        assert isinstance(markers.fill([Gap(topic, own, at, 3, 4)])[at], FencedError)
    assert end_offsets(bench.target, [at.topic]) == {at: 3}


def test_a_gap_that_another_attempt_has_filled_is_looked_at_again(bench: Bench, topic: str) -> None:
    """Data continues under the epoch of its marker, then, as in all attempts."""
    settings, at = connection(bench.target), TopicPartition(remote(topic), 0)
    with closing(ControlMarkers(settings)) as markers, closing(Fencing(settings)) as fencing:
        first = fencing.claim([topic])[topic]
        assert isinstance(first, ProducerId)
        assert markers.fill([Gap(topic, first, at, 0, 1, is_fenced=False)]) == {at: 1}
        second = fencing.claim([topic])[topic]
        assert isinstance(second, ProducerId)
        found = markers.fill([Gap(topic, second, at, 0, 1, is_fenced=False)])[at]
        assert isinstance(found, RetriableError)
    assert end_offsets(bench.target, [at.topic]) == {at: 1}


def test_two_attempts_beside_each_other_fill_gaps_once(bench: Bench, topic: str) -> None:
    plan = plan_of(bench, topic, read_committed=True)
    with ExitStack() as attempts:
        for number in range(4):
            transact(bench.source, topic, numbered(3, 3 * number))
            if number < 2:
                attempts.enter_context(running(plan, fenced_pause_s=0.3))
        append(bench.source, topic, numbered(4, 12))
        await_same(bench, topic, 16)
        await_end(bench, topic)


def test_a_foreign_record_stops_the_partition(bench: Bench, topic: str, watch: ProgressReports) -> None:
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 5)
        append(bench.target, remote(topic), [(b"foreign", b"record")])
        append(bench.source, topic, numbered(5, 5))
        report = watch.await_progress(
            topic,
            lambda report: report.state is PartitionState.FAILED and "another producer" in str(report.error),
        )
        assert report.incidents == {IncidentKind.OFFSET_MISMATCH.value: 1}
        assert "written offset 5" in str(report.error)
    with running(plan_of(bench, topic)):  # nor does the next attempt continue
        watch.await_progress(
            topic, lambda report: report.incidents == {} and "another producer" in str(report.error)
        )


def repeat_marker(bench: Bench, topic: str) -> None:
    """Repeat a marker as a coordinator does that starts between a marker and the record of its completion."""
    settings, at = connection(bench.target), TopicPartition(remote(topic), 0)
    last = stored_batches(bench.target, remote(topic))[-1].header
    assert last.attributes & CONTROL
    producer = ProducerId(last.producer_id, last.producer_epoch)
    epoch = coordinator_epoch(settings, at, producer, last.base_offset)
    assert epoch is not None
    with closing(Cluster(settings)) as cluster:
        assert write_markers(cluster, {at: Bulk(producer, epoch, 1)}) == {at: None}


def test_a_record_whose_offset_a_marker_has_is_not_passed_over(
    bench: Bench, topic: str, watch: ProgressReports
) -> None:
    transact(bench.source, topic, numbered(3))
    with running(plan_of(bench, topic, read_committed=True)):
        await_same(bench, topic, 3)
        await_end(bench, topic)
    repeat_marker(bench, topic)
    assert ends(bench, topic) == (4, 5)
    append(bench.source, topic, numbered(3, 3))
    plan = plan_of(bench, topic, read_committed=True)
    said = "the offset 4 of its next record is taken by a control marker"
    with running(plan):
        watch.await_progress(topic, lambda report: said in str(report.error))
    first_end = time.time()
    with running(plan):  # nor does the attempt after it pass over it
        watch.await_progress(
            topic, lambda report: report.updated_at > first_end and said in str(report.error)
        )
    assert len(placed(bench.target, remote(topic))) == 3, "nothing is at another offset"
    preserving = Preserving(on_mismatch=OnMismatch.CONTINUE_TRANSLATED)
    with running(replace(plan, settings=replace(plan.settings, preserving=preserving))):
        bench.await_copied(topic, numbered(6))


def test_offsets_are_translated_from_a_mismatch_on_and_stay_so(
    bench: Bench, topic: str, watch: ProgressReports
) -> None:
    plan = plan_of(bench, topic)
    preserving = Preserving(on_mismatch=OnMismatch.CONTINUE_TRANSLATED)
    plan = replace(plan, settings=replace(plan.settings, preserving=preserving))
    append(bench.source, topic, numbered(5))
    with running(plan):
        await_same(bench, topic, 5)
        append(bench.target, remote(topic), [(b"foreign", b"record")])
        append(bench.source, topic, numbered(5, 5))
        wanted = [*numbered(5), (b"foreign", b"record"), *numbered(5, 5)]
        bench.await_copied(topic, wanted)
        report = watch.await_progress(
            topic, lambda report: IncidentKind.OFFSETS_TRANSLATED.value in report.incidents
        )
        assert report.incidents[IncidentKind.OFFSET_MISMATCH.value] == 1
        append(bench.source, topic, numbered(2, 10))
        bench.await_copied(topic, [*wanted, *numbered(2, 10)])
    assert stored(bench, topic).is_translated
    append(bench.source, topic, numbered(3, 12))
    with running(plan):
        bench.await_copied(topic, [*wanted, *numbered(5, 10)])
        report = watch.await_progress(topic, lambda report: report.position == 14)
        assert not report.incidents, "it is known"
    assert stored(bench, topic).is_translated
    history = sync_history(bench, topic)
    assert [history.translate(offset) for offset in (0, 3, 5, 12, 15)] == [0, 3, 5, 13, 16]


def test_offset_syncs_have_the_same_offset_twice_and_tell_of_gaps_too(bench: Bench, topic: str) -> None:
    """Translation, also for groups that return, gives every offset as it is."""
    append(bench.source, topic, numbered(20))
    delete_records(bench.source, topic, 12)
    for number in range(3):
        transact(bench.source, topic, numbered(2, 20 + 2 * number), commits=number != 1)
        with running(plan_of(bench, topic, read_committed=True)):
            await_end(bench, topic, 23 + 3 * number)
    end = ends(bench, topic)[0]
    history, back = sync_history(bench, topic), sync_history(bench, topic, is_turned=True)
    assert {(sync.upstream_offset - sync.downstream_offset) for sync in history.syncs} == {0}
    for offset in range(12, end + 1):
        assert history.place(offset) == back.place(offset) == Place(offset, 0)
    run = stored(bench, topic).run
    assert run is not None
    assert (run.first_upstream, run.shift) == (12, 0)


def test_a_consumer_that_keeps_its_offsets_moves_by_its_bootstrap_servers(
    bench: Bench, topic: str, tmp_path: Path
) -> None:
    """And back: it has each record once, whatever gaps are between."""
    create_topic(bench.target.bootstrap_servers, topic)
    plan = plan_of(bench, topic, read_committed=True)
    named_alike = tuple(replace(partition, target_topic=topic) for partition in plan.partitions)
    append(bench.source, topic, numbered(10))
    delete_records(bench.source, topic, 4)
    transact(bench.source, topic, numbered(3, 10))
    transact(bench.source, topic, numbered(2, 100), commits=False)
    transact(bench.source, topic, numbered(3, 13))
    await_value(lambda: len(placed(bench.source, topic)) == 12, WAIT_S, lambda: "not committed")
    with closing(OffsetsInSqlite(tmp_path / "offsets.db")) as consumer:
        consumer.read(bench.source.bootstrap_servers, topic, 5)
        with running(replace(plan, partitions=named_alike)):
            await_value(lambda: len(placed(bench.target, topic)) == 12, WAIT_S, lambda: "not copied")
        consumer.read(bench.target.bootstrap_servers, topic, 4)
        consumer.read(bench.source.bootstrap_servers, topic, 3)
        assert consumer.seen == [value for _, value in numbered(12 + 4)[4:]]


WRITTEN_MS: Final = 1_700_000_000_000


def copy_as_java(bench: Bench, topic: str, some: list[Keyed], position: int) -> None:
    """Java's producer has another id, and its position names none."""
    for cluster, name in ((bench.source, topic), (bench.target, remote(topic))):
        append(cluster, name, some, timestamp_ms=WRITTEN_MS)
    store(bench, topic, Position(position))


def test_java_takes_over_and_gives_back(bench: Bench, topic: str) -> None:
    """Java keeps offsets, too, where none is missing."""
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 5)
    copy_as_java(bench, topic, numbered(3, 5), position=7)
    append(bench.source, topic, numbered(2, 8))
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 10)
    append(bench.source, topic, numbered(2, 10))
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 12)
    assert not [b for b in stored_batches(bench.target, remote(topic)) if b.header.attributes & CONTROL]


def test_what_java_has_written_behind_its_position_is_not_taken_for_ours(
    bench: Bench, topic: str, watch: ProgressReports
) -> None:
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 5)
    copy_as_java(bench, topic, numbered(3, 5), position=6)
    with running(plan_of(bench, topic)):
        watch.await_progress(topic, lambda report: "written offset 5" in str(report.error))


def test_a_topic_that_is_not_empty_is_refused(bench: Bench, topic: str, watch: ProgressReports) -> None:
    append(bench.source, topic, numbered(5))
    append(bench.target, remote(topic), [(b"foreign", b"record")])
    with running(plan_of(bench, topic)):
        watch.await_progress(topic, lambda report: "offsets can't be preserved" in str(report.error))
    assert len(placed(bench.target, remote(topic))) == 1


def test_a_topic_that_was_mirrored_with_other_offsets_is_refused(
    bench: Bench, topic: str, watch: ProgressReports
) -> None:
    transact(bench.source, topic, numbered(3))
    await_value(lambda: len(placed(bench.source, topic)) == 3, WAIT_S, lambda: "no marker")
    append(bench.source, topic, numbered(1, 3))
    with running(bench.plan(TopicPartition(topic, 0), read_committed=True)):
        bench.await_copied(topic, numbered(4))
    found = verified(bench, topic, preserves_offsets=True)
    assert [(each.what, each.source_offset, each.target_offset) for each in found.differences] == [
        ("offset", 4, 3)
    ]
    assert verified(bench, topic, preserves_offsets=False) == Comparison(equal=4)
    with running(plan_of(bench, topic, read_committed=True)):
        watch.await_progress(topic, lambda report: "another record at offset 3" in str(report.error))


def test_a_log_start_that_went_back_is_moved_again(bench: Bench, topic: str) -> None:
    """Killed brokers restore such a log start: here it was never moved."""
    append(bench.target, remote(topic), numbered(9))
    target = connection(bench.target)
    watch, partition = LogStartWatch(target), TopicPartition(remote(topic), 0)
    assert not watch.is_due(0.0), "no log starts later than 0"
    watch.begin(partition, 4)
    assert watch.is_due(0.0)
    assert not watch.is_due(CHECK_INTERVAL_S / 2)
    watch.check()
    assert list_offsets(ConsumerSettings(target), [partition], EARLIEST) == {partition: 4}
    delete_records(bench.target, remote(topic), 6)
    watch.check()
    assert list_offsets(ConsumerSettings(target), [partition], EARLIEST) == {partition: 6}


def test_a_log_start_that_can_not_be_moved_yet_is_due_at_once(bench: Bench, topic: str) -> None:
    """All brokers have crashed, and a leader does not know yet what is replicated."""
    target, partition = connection(bench.target), TopicPartition(remote(topic), 0)
    watch = LogStartWatch(target)
    watch.begin(partition, 4)
    assert watch.is_due(10.0)
    watch.check()
    assert watch.is_due(10.1)
    append(bench.target, remote(topic), numbered(9))
    watch.check()
    assert not watch.is_due(10.2)
    assert list_offsets(ConsumerSettings(target), [partition], EARLIEST) == {partition: 4}


def test_a_beginning_continues_where_it_was_interrupted(bench: Bench, topic: str) -> None:
    """And what retention removes from the source meanwhile is filled, too."""
    append(bench.source, topic, numbered(30))
    delete_records(bench.source, topic, 10)
    starts = PreservedStarts.of(plan_of(bench, topic))
    target = TopicPartition(remote(topic), 0)
    with closing(Fencing(connection(bench.target))) as fencing:
        own_id = transactional_id_of(plan_of(bench, topic), TopicPartition(topic, 0))
        claimed = fencing.claim([own_id])[own_id]
    assert isinstance(claimed, ProducerId)
    assert starts.fill({target: Beginning(claimed.id, 0, 10)}) == {target: None}
    delete_records(bench.source, topic, 17)
    with running(plan_of(bench, topic)):
        await_same(bench, topic, 13)
    assert list_offsets(ConsumerSettings(connection(bench.target)), [target], EARLIEST) == {target: 17}


def test_a_beginning_that_takes_too_long_waits_and_says_so(bench: Bench, topic: str) -> None:
    plan = plan_of(bench, topic)
    target = TopicPartition(remote(topic), 0)
    starts = PreservedStarts(plan.producer, fill_timeout_s=5.0)
    error = starts.fill({target: Beginning(77, 0, 1 << 40)})[target]
    assert "raise offsets.preserve.fill.timeout.ms" in str(error)
