"""Cycle detection between two flows that keep topic names, one in each direction, without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pytest

from sparkmirror.batches.provenance_header import HEADER, ProvenanceHeader
from sparkmirror.clusters import LocalCluster
from sparkmirror.copy.copy_plan import StatePlan, TaskPlan, TransactionPlan
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.incidents import DEFAULT_REACTIONS, OnLoop
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC
from sparkmirror.groups.offset_resolver import Budget, OffsetResolver, Wanted
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.positions import Position, position_record, read_positions
from sparkmirror.storage.producer_id_topic import WriterDirectory
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.verify.range_comparison import Sides, verify_range
from sparkmirror.verify.range_planning import MirroredPartition, plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.contract.copying import CONNECTOR, running
from tests.support.acls import in_force
from tests.support.broker_data import (
    Keyed,
    append,
    create_topic,
    ensure_compacted_topic,
    keyed_of,
    latest,
    numbered,
    records,
)
from tests.support.broker_requests import stored_batches
from tests.support.connections import connection
from tests.support.isolation import seen_by
from tests.support.recorded_setup import Acl
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
POSITIONS: Final = "cycles.positions"
ATTEMPTS: Final = "cycles.attempts"
PROGRESS: Final = "cycles.progress"
COMPACTED: Final = {"cleanup.policy": "compact"}
IDEMPOTENT: Final = {"enable.idempotence": "true"}
TINY: Final = {"batch.num.messages": "1"}
FAIL: Final = DEFAULT_REACTIONS._replace(on_loop=OnLoop.FAIL)
COPY: Final = DEFAULT_REACTIONS._replace(on_loop=OnLoop.COPY)


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of replication, under a policy that keeps topic names."""

    flow: Flow
    source: LocalCluster
    target: LocalCluster

    def plan(self, topic: str, partitions: int = 1) -> TaskPlan:
        source, target = connection(self.source), connection(self.target)
        return TaskPlan(
            flow=self.flow,
            connector=CONNECTOR,
            task=0,
            job_epoch=1,
            announced_at=0,
            partitions=tuple(
                CopyPartition(TopicPartition(topic, number), topic) for number in range(partitions)
            ),
            consumer=ConsumerSettings(source),
            producer=ProducerSettings(target),
            state=StatePlan(target, POSITIONS, PROGRESS, ATTEMPTS),
            offset_syncs=None,
            names_show_origin=False,
        )

    def positions(self, topic: str) -> Mapping[TopicPartition, Position]:
        wanted = [TopicPartition(topic, 0)]
        return read_positions(connection(self.target), POSITIONS, CONNECTOR, self.flow.source, wanted)

    def store(self, positions: Mapping[TopicPartition, Position]) -> None:
        writer = TopicWriter(connection(self.target))
        writer.write(
            POSITIONS,
            [position_record(CONNECTOR, self.flow.source, *stored) for stored in positions.items()],
        )
        writer.close()

    def await_position(self, topic: str, position: int, partition: int = 0) -> PartitionProgress:
        return self.await_report(topic, lambda report: report.position == position - 1, partition)

    def await_report(self, topic: str, holds: object, partition: int = 0) -> PartitionProgress:
        reader = ProgressReader(connection(self.target), PROGRESS)
        seen: list[PartitionProgress | None] = [None]

        def found() -> PartitionProgress | None:
            seen[0] = reader.poll(0.05).get((CONNECTOR, TopicPartition(topic, partition)))
            return seen[0] if seen[0] is not None and holds(seen[0]) else None  # type: ignore[operator]

        try:
            return await_value(found, WAIT_S, lambda: f"{self.flow}: the last report was {seen}")
        finally:
            reader.close()


def create_own_topics(cluster: LocalCluster) -> None:
    for name in (POSITIONS, PROGRESS, ATTEMPTS, PRODUCER_IDS_TOPIC):
        ensure_compacted_topic(cluster.bootstrap_servers, name)


@pytest.fixture(scope="module")
def directions(source_cluster: LocalCluster, target_cluster: LocalCluster) -> tuple[Direction, Direction]:
    for cluster in (source_cluster, target_cluster):
        create_own_topics(cluster)
    near, far = Alias("near"), Alias("far")
    return (
        Direction(Flow(near, far), source_cluster, target_cluster),
        Direction(Flow(far, near), target_cluster, source_cluster),
    )


@contextmanager
def running_both(
    directions: Sequence[Direction], topic: str, partitions: int = 1, **changes: object
) -> Iterator[None]:
    with ExitStack() as flows:
        for direction in directions:
            flows.enter_context(running(replace(direction.plan(topic, partitions), **changes)))  # type: ignore[arg-type]
        yield


def create(directions: Sequence[Direction], topic: str, partitions: int = 1) -> None:
    for direction in directions:
        create_topic(direction.source.bootstrap_servers, topic, partitions=partitions)


def await_everywhere(
    directions: Sequence[Direction], topic: str, expected: Sequence[Keyed], partition: int = 0
) -> None:
    """Wait until both sides have exactly these records, in any order."""
    for direction in directions:
        await_count(direction, topic, len(expected), partition)
    for direction in directions:
        # A flow whose position is at the end will not copy any of these records again.
        direction.await_position(topic, len(keyed_of(direction.source, topic, partition)), partition)
    for direction in directions:
        assert sorted(keyed_of(direction.target, topic, partition)) == sorted(expected)


def await_count(direction: Direction, topic: str, count: int, partition: int = 0) -> None:
    seen: list[Keyed] = []

    def arrived() -> bool:
        seen[:] = seen_by(direction.target, TopicPartition(topic, partition), "read_committed")
        return len(seen) >= count

    await_value(arrived, WAIT_S, lambda: f"{direction.flow}: {len(seen)} of {count} records of {topic}")


def test_each_record_is_mirrored_once_in_each_direction(directions: tuple[Direction, Direction]) -> None:
    """Large batches, batches of one record, and batches of idempotent producers."""
    topic, (out, back) = "cycles.both", directions
    create(directions, topic, partitions=2)
    append(out.source, topic, numbered(50))
    append(back.source, topic, numbered(50, 100), settings=IDEMPOTENT)
    append(out.source, topic, numbered(200), partition=1, settings=TINY)
    append(back.source, topic, numbered(200, 1000), partition=1, settings={**TINY, **IDEMPOTENT})
    with running_both(directions, topic, 2):
        await_everywhere(directions, topic, [*numbered(50), *numbered(50, 100)])
        await_everywhere(directions, topic, [*numbered(200), *numbered(200, 1000)], 1)
        for number in range(5):
            append(out.source, topic, numbered(10, 200 + 10 * number), settings=IDEMPOTENT)
            append(back.source, topic, numbered(10, 300 + 10 * number))
        append(out.source, topic, numbered(100, 2000), partition=1, settings=TINY)
        append(back.source, topic, numbered(100, 3000), partition=1, settings=TINY)
        every = [*numbered(50), *numbered(50, 100), *numbered(50, 200), *numbered(50, 300)]
        await_everywhere(directions, topic, every)
        tiny = [*numbered(200), *numbered(200, 1000), *numbered(100, 2000), *numbered(100, 3000)]
        await_everywhere(directions, topic, tiny, 1)
        reports = [direction.await_position(topic, 200) for direction in directions]
        tiny_reports = [direction.await_position(topic, 600, 1) for direction in directions]
    assert [report.looped for report in (*reports, *tiny_reports)] == [100, 100, 300, 300]
    assert [report.records for report in (*reports, *tiny_reports)] == [100, 100, 300, 300]
    assert [report.incidents for report in reports] == [{"loop": 1}, {"loop": 1}]
    assert "were mirrored from near to far: they, and what follows" in str(reports[1].notice)
    mirrored_records = ([*numbered(50), *numbered(50, 200)], [*numbered(50, 100), *numbered(50, 300)])
    for direction, copied in zip(directions, mirrored_records, strict=True):
        there = keyed_of(direction.target, topic)
        # Only records up to the last copied one are compared.
        end = max(map(there.index, copied)) + 1
        assert verify(direction, topic) == Comparison(equal=100, foreign=end - 100)


def verify(direction: Direction, topic: str, provenance: ProvenanceHeader | None = None) -> Comparison:
    """Compare partition 0 as `sparkmirror verify` does."""
    here, there = connection(direction.source), connection(direction.target)
    left_out = WriterDirectory(here, there).from_target()
    sides = Sides(direction.flow, ConsumerSettings(here), ConsumerSettings(there), left_out, provenance)
    partition = TopicPartition(topic, 0)
    mirrored = MirroredPartition(CopyPartition(partition, topic), direction.positions(topic)[partition])
    return sum(map(verify_range, plan_ranges(sides, [mirrored], range_offsets=60)), Comparison())


def test_transactions_and_their_markers_are_not_copied_back(directions: tuple[Direction, Direction]) -> None:
    topic, (out, back) = "cycles.transactions", directions
    create(directions, topic)
    append(out.source, topic, numbered(50))
    append(back.source, topic, numbered(50, 100), settings=IDEMPOTENT)
    every = [*numbered(50), *numbered(50, 100), *numbered(20, 200), *numbered(20, 300)]
    with ExitStack() as flows:
        for direction in directions:
            plan = direction.plan(topic)
            consumer = replace(plan.consumer, read_committed=True)
            transaction = TransactionPlan(f"{topic}-{direction.flow.source}", timeout_s=60.0)
            flows.enter_context(running(replace(plan, consumer=consumer, transaction=transaction)))
        for direction in directions:
            await_count(direction, topic, 100)
        append(out.source, topic, numbered(20, 200))
        append(back.source, topic, numbered(20, 300))
        for direction in directions:
            await_count(direction, topic, len(every))
        for direction in directions:
            direction.await_report(topic, lambda report: report.looped >= 70)
    for direction in directions:
        assert sorted(keyed_of(direction.target, topic)) == sorted(every)


@pytest.mark.parametrize("header", [False, True])
def test_resumed_task_skips_cycled_records(directions: tuple[Direction, Direction], *, header: bool) -> None:
    """After a stop, and after a crash, when the stored position is behind the records on the target."""
    topic, (out, back) = f"cycles.resumed.{header}", directions
    create(directions, topic)
    append(out.source, topic, numbered(10))
    append(back.source, topic, numbered(10, 100))
    with running_both(directions, topic, settings=CopySettings(provenance_header=header)):
        await_everywhere(directions, topic, [*numbered(10), *numbered(10, 100)])
    before = [direction.positions(topic) for direction in directions]
    every = [*numbered(10), *numbered(10, 100)]
    with running_both(directions, topic, settings=CopySettings(provenance_header=header)):
        for number in range(3):
            append(out.source, topic, numbered(10, 1000 + 10 * number))
            append(back.source, topic, numbered(10, 2000 + 10 * number), settings=IDEMPOTENT)
            every += [*numbered(10, 1000 + 10 * number), *numbered(10, 2000 + 10 * number)]
            await_everywhere(directions, topic, every)
    for direction, positions in zip(directions, before, strict=True):
        direction.store(positions)
    with running_both(directions, topic, settings=CopySettings(provenance_header=header)):
        append(out.source, topic, numbered(5, 3000))
        append(back.source, topic, numbered(5, 4000))
        await_everywhere(directions, topic, [*every, *numbered(5, 3000), *numbered(5, 4000)])
    headers = [ProvenanceHeader(*direction.flow) if header else None for direction in directions]
    for direction, provenance in zip(directions, headers, strict=True):
        found = verify(direction, topic, provenance)
        assert (found.equal, found.counts) == (45, {})


def test_offsets_are_translated_past_cycled_records(directions: tuple[Direction, Direction]) -> None:
    """The order differs: 20 and 20 records on one side, ten of each in turn on the other."""
    topic, (out, back) = "cycles.translated", directions
    create(directions, topic)
    for first in (0, 10):
        append(out.source, topic, numbered(10, first))
        with running(out.plan(topic)):
            await_count(out, topic, 2 * first + 10)
        append(back.source, topic, numbered(10, 100 + first))
    with running(back.plan(topic)):
        back.await_position(topic, 40)
    assert keyed_of(back.target, topic) == [*numbered(20), *numbered(20, 100)]
    partition = TopicPartition(topic, 0)
    known = SyncHistory(OffsetSync(partition, 10, 20))
    known.add(OffsetSync(partition, 39, 39))
    source, target = ConsumerSettings(connection(back.source)), ConsumerSettings(connection(back.target))
    with closing(
        OffsetResolver(source, target, flow_log(__name__, back.flow), names_show_origin=False)
    ) as resolver:
        wanted = Wanted(partition, 35, partition, known)
        assert resolver.resolve([wanted], Budget(64 << 20, WAIT_S)).settled == {wanted}
    assert known.place(35) == Place(35, 0)


def test_cycle_stops_the_partition_if_configured(directions: tuple[Direction, Direction]) -> None:
    topic, (out, back) = "cycles.failing", directions
    create(directions, topic)
    append(back.source, topic, numbered(3, 100))
    with running(out.plan(topic)):
        append(out.source, topic, numbered(4))
        out.await_position(topic, 4)
    with running(replace(back.plan(topic), settings=CopySettings(FAIL))):
        report = back.await_report(topic, lambda report: report.state is PartitionState.FAILED)
        back.await_report(topic, lambda report: report.position == 2)
    assert f"{topic}-0: offsets 3 to 6 were mirrored from near to far, and on.loop is fail" in str(
        report.error
    )
    with running(back.plan(topic)):
        back.await_position(topic, 7)
    assert keyed_of(back.target, topic) == [*numbered(4), *numbered(3, 100)]


def test_records_are_copied_in_a_cycle_if_configured(directions: tuple[Direction, Direction]) -> None:
    topic, (out, back) = "cycles.copied", directions
    create(directions, topic)
    append(out.source, topic, numbered(4))
    with running(out.plan(topic)):
        out.await_position(topic, 4)
    with running(replace(back.plan(topic), settings=CopySettings(COPY))):
        back.await_position(topic, 4)
    assert keyed_of(back.target, topic) == [*numbered(4), *numbered(4)]


def test_records_of_other_producers_are_copied(
    directions: tuple[Direction, Direction], frail_cluster: LocalCluster
) -> None:
    """A chain of three clusters. No flow writes to the first one."""
    topic, first = "cycles.chain", replace(directions[0], source=frail_cluster)
    for cluster in (first.source, *(direction.source for direction in directions)):
        create_topic(cluster.bootstrap_servers, topic)
    append(first.source, topic, numbered(10), settings=IDEMPOTENT)
    with running(first.plan(topic)), running(directions[1].plan(topic)):
        reports = [direction.await_position(topic, 10) for direction in (first, directions[1])]
    assert [(report.looped, report.incidents) for report in reports] == [(0, {}), (0, {})]
    assert keyed_of(directions[1].target, topic) == numbered(10)


def test_provenance_headers_stop_a_cycle_of_three_clusters(
    directions: tuple[Direction, Direction], frail_cluster: LocalCluster
) -> None:
    topic, (out, _) = "cycles.ring", directions
    near, far, third = out.source, out.target, frail_cluster
    names = dict(zip((near, far, third), map(Alias, ("near", "far", "third")), strict=True))
    ring = [Direction(Flow(names[a], names[b]), a, b) for a, b in ((near, far), (far, third), (third, near))]
    create_own_topics(frail_cluster)
    for cluster in names:
        create_topic(cluster.bootstrap_servers, topic)
    for number, direction in enumerate(ring):
        append(direction.source, topic, numbered(10, 100 * number))
    every = [record for number in range(3) for record in numbered(10, 100 * number)]
    with running_both(ring, topic, settings=CopySettings(provenance_header=True)):
        await_everywhere(ring, topic, every)
        reports = [direction.await_report(topic, lambda report: report.looped == 10) for direction in ring]
    assert [report.records for report in reports] == [20, 20, 20]
    come = {record.key(): record.headers() for record in records(near, topic)}
    assert come[b"key-0"] is None
    assert come[b"key-100"] == [(HEADER.decode(), b"far,third")]
    assert come[b"key-200"] == [(HEADER.decode(), b"third")]


@pytest.fixture
def without_producer_ids(frail_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """A cluster whose topic of producer ids must not be read."""
    create_own_topics(frail_cluster)
    denied: Acl = ("TOPIC", "LITERAL", PRODUCER_IDS_TOPIC, "User:ANONYMOUS", "*", "READ", "DENY")
    with in_force(frail_cluster, denied):
        yield frail_cluster


def test_undetectable_cycles_are_reported(
    directions: tuple[Direction, Direction], without_producer_ids: LocalCluster
) -> None:
    topic, direction = "cycles.unseen", replace(directions[0], source=without_producer_ids)
    for cluster in (direction.source, direction.target):
        create_topic(cluster.bootstrap_servers, topic)
    append(direction.source, topic, numbered(10), settings=IDEMPOTENT)
    with running(direction.plan(topic)):
        report = direction.await_position(topic, 10)
    assert report.incidents == {"loops-unseen": 1}
    assert f"are copied back: read {PRODUCER_IDS_TOPIC}" in str(report.notice)
    with running(replace(direction.plan(topic), settings=CopySettings(FAIL))):
        append(direction.source, topic, numbered(1, 10), settings=IDEMPOTENT)
        report = direction.await_report(topic, lambda report: report.state is PartitionState.FAILED)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(report.error)
    assert keyed_of(direction.target, topic) == numbered(10)


def test_producer_ids_are_recorded_with_their_source_alias(directions: tuple[Direction, Direction]) -> None:
    topic, direction = "cycles.recorded", directions[0]
    create(directions, topic)
    append(direction.source, topic, numbered(3))
    with running(direction.plan(topic)):
        await_count(direction, topic, 3)
    recorded = latest(direction.target, PRODUCER_IDS_TOPIC)
    producers = {batch.header.producer_id for batch in stored_batches(direction.target, topic)}
    assert producers
    assert all(b'"alias":"near"' in (recorded[b"[%d]" % producer] or b"") for producer in producers)
