"""Two flows that keep names, one in each direction: each record crosses over once, and none comes back."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from sparkmirror.batches.provenance_header import HEADER, ProvenanceHeader
from sparkmirror.clusters import LocalCluster
from sparkmirror.connectors.flow_log import flow_log
from sparkmirror.connectors.source import CopySettings
from sparkmirror.copy.copy_plan import CopyPartition, StatePlan, TaskPlan, TransactionPlan
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.incidents import DEFAULT_REACTIONS, OnLoop
from sparkmirror.groups.offset_resolver import OffsetResolver, Wanted
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.positions import Position, position_record, read_positions
from sparkmirror.storage.producer_id_topic import PRODUCER_IDS_TOPIC, WriterDirectory
from sparkmirror.storage.progress import PartitionProgress, PartitionState, ProgressReader
from sparkmirror.verify.comparison import Comparison
from sparkmirror.verify.plan import MirroredPartition, plan_ranges
from sparkmirror.verify.ranges import Sides, verify_range
from tests.contract.copying import CONNECTOR, running
from tests.support.broker_data import (
    Keyed,
    admin,
    append,
    create_topic,
    keyed_of,
    latest,
    numbered,
    records,
    topics,
)
from tests.support.connections import connection
from tests.support.isolation import seen_by
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
POSITIONS: Final = "loops.positions"
PROGRESS: Final = "loops.progress"
COMPACTED: Final = {"cleanup.policy": "compact"}
IDEMPOTENT: Final = {"enable.idempotence": "true"}
TINY: Final = {"batch.num.messages": "1"}
FAIL: Final = DEFAULT_REACTIONS._replace(on_loop=OnLoop.FAIL)
COPY: Final = DEFAULT_REACTIONS._replace(on_loop=OnLoop.COPY)


@dataclass(frozen=True, slots=True)
class Way:
    """A flow from here to there, under a policy that keeps names."""

    flow: Flow
    here: LocalCluster
    there: LocalCluster

    def plan(self, topic: str, partitions: int = 1) -> TaskPlan:
        source, target = connection(self.here), connection(self.there)
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
            state=StatePlan(target, POSITIONS, PROGRESS),
            offset_syncs=None,
            names_show_origin=False,
        )

    def positions(self, topic: str) -> Mapping[TopicPartition, Position]:
        wanted = [TopicPartition(topic, 0)]
        return read_positions(connection(self.there), POSITIONS, CONNECTOR, self.flow.source, wanted)

    def store(self, positions: Mapping[TopicPartition, Position]) -> None:
        writer = TopicWriter(connection(self.there))
        writer.write(
            POSITIONS,
            [position_record(CONNECTOR, self.flow.source, *stored) for stored in positions.items()],
        )
        writer.close()

    def await_position(self, topic: str, position: int, partition: int = 0) -> PartitionProgress:
        return self.await_report(topic, lambda report: report.position == position - 1, partition)

    def await_report(self, topic: str, holds: object, partition: int = 0) -> PartitionProgress:
        reader = ProgressReader(connection(self.there), PROGRESS)
        seen: list[PartitionProgress | None] = [None]

        def found() -> PartitionProgress | None:
            seen[0] = reader.poll(0.05).get((CONNECTOR, TopicPartition(topic, partition)))
            return seen[0] if seen[0] is not None and holds(seen[0]) else None  # type: ignore[operator]

        try:
            return await_value(found, WAIT_S, lambda: f"{self.flow}: the last report was {seen}")
        finally:
            reader.close()


def create_own_topics(cluster: LocalCluster) -> None:
    for name in {POSITIONS, PROGRESS, PRODUCER_IDS_TOPIC} - topics(cluster).keys():
        create_topic(cluster.bootstrap_servers, name, config=COMPACTED)


@pytest.fixture(scope="module")
def ways(source_cluster: LocalCluster, target_cluster: LocalCluster) -> tuple[Way, Way]:
    for cluster in (source_cluster, target_cluster):
        create_own_topics(cluster)
    near, far = Alias("near"), Alias("far")
    return (
        Way(Flow(near, far), source_cluster, target_cluster),
        Way(Flow(far, near), target_cluster, source_cluster),
    )


@contextmanager
def both(ways: Sequence[Way], topic: str, partitions: int = 1, **changes: object) -> Iterator[None]:
    with ExitStack() as flows:
        for way in ways:
            flows.enter_context(running(replace(way.plan(topic, partitions), **changes)))  # type: ignore[arg-type]
        yield


def create(ways: Sequence[Way], topic: str, partitions: int = 1) -> None:
    for way in ways:
        create_topic(way.here.bootstrap_servers, topic, partitions=partitions)


def await_everywhere(ways: Sequence[Way], topic: str, expected: Sequence[Keyed], partition: int = 0) -> None:
    """Exactly these on both sides, in whatever order the sides' records have come together."""
    for way in ways:
        await_count(way, topic, len(expected), partition)
    for way in ways:
        # Who has passed all that is there now will not bring any of it again.
        way.await_position(topic, len(keyed_of(way.here, topic, partition)), partition)
    for way in ways:
        assert sorted(keyed_of(way.there, topic, partition)) == sorted(expected)


def await_count(way: Way, topic: str, count: int, partition: int = 0) -> None:
    seen: list[Keyed] = []

    def arrived() -> bool:
        seen[:] = seen_by(way.there, TopicPartition(topic, partition), "read_committed")
        return len(seen) >= count

    await_value(arrived, WAIT_S, lambda: f"{way.flow}: {len(seen)} of {count} records of {topic}")


def test_each_record_crosses_over_once(ways: tuple[Way, Way]) -> None:
    """Batches as they are, tiny ones, and those of producers whose ids must be looked up."""
    topic, (out, back) = "loops.both", ways
    create(ways, topic, partitions=2)
    append(out.here, topic, numbered(50))
    append(back.here, topic, numbered(50, 100), settings=IDEMPOTENT)
    append(out.here, topic, numbered(200), partition=1, settings=TINY)
    append(back.here, topic, numbered(200, 1000), partition=1, settings={**TINY, **IDEMPOTENT})
    with both(ways, topic, 2):
        await_everywhere(ways, topic, [*numbered(50), *numbered(50, 100)])
        await_everywhere(ways, topic, [*numbered(200), *numbered(200, 1000)], 1)
        for number in range(5):
            append(out.here, topic, numbered(10, 200 + 10 * number), settings=IDEMPOTENT)
            append(back.here, topic, numbered(10, 300 + 10 * number))
        append(out.here, topic, numbered(100, 2000), partition=1, settings=TINY)
        append(back.here, topic, numbered(100, 3000), partition=1, settings=TINY)
        every = [*numbered(50), *numbered(50, 100), *numbered(50, 200), *numbered(50, 300)]
        await_everywhere(ways, topic, every)
        tiny = [*numbered(200), *numbered(200, 1000), *numbered(100, 2000), *numbered(100, 3000)]
        await_everywhere(ways, topic, tiny, 1)
        reports = [way.await_position(topic, 200) for way in ways]
        tiny_reports = [way.await_position(topic, 600, 1) for way in ways]
    assert [report.looped for report in (*reports, *tiny_reports)] == [100, 100, 300, 300]
    assert [report.records for report in (*reports, *tiny_reports)] == [100, 100, 300, 300]
    assert [report.incidents for report in reports] == [{"loop": 1}, {"loop": 1}]
    assert "were mirrored from near to far: they, and what follows" in str(reports[1].notice)
    crossed = ([*numbered(50), *numbered(50, 200)], [*numbered(50, 100), *numbered(50, 300)])
    for way, copied in zip(ways, crossed, strict=True):
        there = keyed_of(way.there, topic)
        # What others wrote behind the last copy is nobody's business.
        end = max(map(there.index, copied)) + 1
        assert verified(way, topic) == Comparison(equal=100, foreign=end - 100)


def verified(way: Way, topic: str, provenance: ProvenanceHeader | None = None) -> Comparison:
    """What `sparkmirror verify` finds of partition 0."""
    here, there = connection(way.here), connection(way.there)
    left_out = WriterDirectory(here, there).from_target()
    sides = Sides(way.flow, ConsumerSettings(here), ConsumerSettings(there), left_out, provenance)
    partition = TopicPartition(topic, 0)
    mirrored = MirroredPartition(CopyPartition(partition, topic), way.positions(topic)[partition])
    return sum(map(verify_range, plan_ranges(sides, [mirrored], range_offsets=60)), Comparison())


def test_transactions_and_their_markers_do_not_come_back(ways: tuple[Way, Way]) -> None:
    topic, (out, back) = "loops.transactions", ways
    create(ways, topic)
    append(out.here, topic, numbered(50))
    append(back.here, topic, numbered(50, 100), settings=IDEMPOTENT)
    every = [*numbered(50), *numbered(50, 100), *numbered(20, 200), *numbered(20, 300)]
    with ExitStack() as flows:
        for way in ways:
            plan = way.plan(topic)
            consumer = replace(plan.consumer, read_committed=True)
            transaction = TransactionPlan(f"{topic}-{way.flow.source}", timeout_s=60.0)
            flows.enter_context(running(replace(plan, consumer=consumer, transaction=transaction)))
        for way in ways:
            await_count(way, topic, 100)
        append(out.here, topic, numbered(20, 200))
        append(back.here, topic, numbered(20, 300))
        for way in ways:
            await_count(way, topic, len(every))
        for way in ways:
            way.await_report(topic, lambda report: report.looped >= 70)
    for way in ways:
        assert sorted(keyed_of(way.there, topic)) == sorted(every)


@pytest.mark.parametrize("header", [False, True])
def test_resumed_task_leaves_out_the_same_records(ways: tuple[Way, Way], *, header: bool) -> None:
    """After an orderly stop, and after a crash: a position that lags is matched with what has arrived."""
    topic, (out, back) = f"loops.resumed.{header}", ways
    create(ways, topic)
    append(out.here, topic, numbered(10))
    append(back.here, topic, numbered(10, 100))
    with both(ways, topic, settings=CopySettings(provenance_header=header)):
        await_everywhere(ways, topic, [*numbered(10), *numbered(10, 100)])
    before = [way.positions(topic) for way in ways]
    every = [*numbered(10), *numbered(10, 100)]
    with both(ways, topic, settings=CopySettings(provenance_header=header)):
        for number in range(3):
            append(out.here, topic, numbered(10, 1000 + 10 * number))
            append(back.here, topic, numbered(10, 2000 + 10 * number), settings=IDEMPOTENT)
            every += [*numbered(10, 1000 + 10 * number), *numbered(10, 2000 + 10 * number)]
            await_everywhere(ways, topic, every)
    for way, positions in zip(ways, before, strict=True):
        way.store(positions)
    with both(ways, topic, settings=CopySettings(provenance_header=header)):
        append(out.here, topic, numbered(5, 3000))
        append(back.here, topic, numbered(5, 4000))
        await_everywhere(ways, topic, [*every, *numbered(5, 3000), *numbered(5, 4000)])
    headers = [ProvenanceHeader(*way.flow) if header else None for way in ways]
    for way, provenance in zip(ways, headers, strict=True):
        found = verified(way, topic, provenance)
        assert (found.equal, found.counts) == (45, {})


def test_offsets_are_translated_past_cycled_records(ways: tuple[Way, Way]) -> None:
    """Here 20 records of its own come first; there ten of each side are in turn."""
    topic, (out, back) = "loops.translated", ways
    create(ways, topic)
    for first in (0, 10):
        append(out.here, topic, numbered(10, first))
        with running(out.plan(topic)):
            await_count(out, topic, 2 * first + 10)
        append(back.here, topic, numbered(10, 100 + first))
    with running(back.plan(topic)):
        back.await_position(topic, 40)
    assert keyed_of(back.there, topic) == [*numbered(20), *numbered(20, 100)]
    partition = TopicPartition(topic, 0)
    known = SyncHistory(OffsetSync(partition, 10, 20))
    known.add(OffsetSync(partition, 39, 39))
    source, target = ConsumerSettings(connection(back.here)), ConsumerSettings(connection(back.there))
    with closing(
        OffsetResolver(source, target, flow_log(__name__, back.flow), names_show_origin=False)
    ) as resolver:
        wanted = Wanted(partition, 35, partition, known)
        assert resolver.resolve([wanted], WAIT_S) == {wanted}
    assert known.place(35) == Place(35, 0)


def test_cycle_stops_the_partition_if_configured(ways: tuple[Way, Way]) -> None:
    topic, (out, back) = "loops.failing", ways
    create(ways, topic)
    append(back.here, topic, numbered(3, 100))
    with running(out.plan(topic)):
        append(out.here, topic, numbered(4))
        out.await_position(topic, 4)
    with running(replace(back.plan(topic), settings=CopySettings(FAIL))):
        report = back.await_report(topic, lambda report: report.state is PartitionState.FAILED)
        back.await_report(topic, lambda report: report.position == 2)
    assert f"{topic}-0: offsets 3 to 6 were mirrored from near to far, and on.loop is fail" in str(
        report.error
    )
    with running(back.plan(topic)):
        back.await_position(topic, 7)
    assert keyed_of(back.there, topic) == [*numbered(4), *numbered(3, 100)]


def test_records_are_copied_in_a_cycle_if_configured(ways: tuple[Way, Way]) -> None:
    topic, (out, back) = "loops.copied", ways
    create(ways, topic)
    append(out.here, topic, numbered(4))
    with running(out.plan(topic)):
        out.await_position(topic, 4)
    with running(replace(back.plan(topic), settings=CopySettings(COPY))):
        back.await_position(topic, 4)
    assert keyed_of(back.there, topic) == [*numbered(4), *numbered(4)]


def test_records_of_other_producers_are_copied(ways: tuple[Way, Way], frail_cluster: LocalCluster) -> None:
    """A chain of three clusters; no flow has ever written to the first."""
    topic, first = "loops.chain", replace(ways[0], here=frail_cluster)
    for cluster in (first.here, *(way.here for way in ways)):
        create_topic(cluster.bootstrap_servers, topic)
    append(first.here, topic, numbered(10), settings=IDEMPOTENT)
    with running(first.plan(topic)), running(ways[1].plan(topic)):
        reports = [way.await_position(topic, 10) for way in (first, ways[1])]
    assert [(report.looped, report.incidents) for report in reports] == [(0, {}), (0, {})]
    assert keyed_of(ways[1].there, topic) == numbered(10)


def test_headers_end_a_ring_of_three(ways: tuple[Way, Way], frail_cluster: LocalCluster) -> None:
    topic, (out, _) = "loops.ring", ways
    near, far, third = out.here, out.there, frail_cluster
    names = dict(zip((near, far, third), map(Alias, ("near", "far", "third")), strict=True))
    ring = [Way(Flow(names[a], names[b]), a, b) for a, b in ((near, far), (far, third), (third, near))]
    create_own_topics(frail_cluster)
    for cluster in names:
        create_topic(cluster.bootstrap_servers, topic)
    for number, way in enumerate(ring):
        append(way.here, topic, numbered(10, 100 * number))
    every = [record for number in range(3) for record in numbered(10, 100 * number)]
    with both(ring, topic, settings=CopySettings(provenance_header=True)):
        await_everywhere(ring, topic, every)
        reports = [way.await_report(topic, lambda report: report.looped == 10) for way in ring]
    assert [report.records for report in reports] == [20, 20, 20]
    come = {record.key(): record.headers() for record in records(near, topic)}
    assert come[b"key-0"] is None
    assert come[b"key-100"] == [(HEADER.decode(), b"far,third")]
    assert come[b"key-200"] == [(HEADER.decode(), b"third")]


@pytest.fixture
def unreadable(frail_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Its producer ids are kept from us."""
    create_own_topics(frail_cluster)
    client = admin(frail_cluster)
    pattern = ResourceType.TOPIC, PRODUCER_IDS_TOPIC, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"
    denied = AclOperation.READ, AclPermissionType.DENY
    (created,) = client.create_acls([AclBinding(*pattern, *denied)]).values()
    created.result(WAIT_S)
    yield frail_cluster
    (deleted,) = client.delete_acls([AclBindingFilter(*pattern, *denied)]).values()
    deleted.result(WAIT_S)


def test_undetectable_cycles_are_reported(ways: tuple[Way, Way], unreadable: LocalCluster) -> None:
    topic, way = "loops.unseen", replace(ways[0], here=unreadable)
    for cluster in (way.here, way.there):
        create_topic(cluster.bootstrap_servers, topic)
    append(way.here, topic, numbered(10), settings=IDEMPOTENT)
    with running(way.plan(topic)):
        report = way.await_position(topic, 10)
    assert report.incidents == {"loops-unseen": 1}
    assert f"are copied back: read {PRODUCER_IDS_TOPIC}" in str(report.notice)
    with running(replace(way.plan(topic), settings=CopySettings(FAIL))):
        append(way.here, topic, numbered(1, 10), settings=IDEMPOTENT)
        report = way.await_report(topic, lambda report: report.state is PartitionState.FAILED)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(report.error)
    assert keyed_of(way.there, topic) == numbered(10)


def test_ids_are_recorded_with_the_cluster_that_they_are_of(ways: tuple[Way, Way]) -> None:
    recorded = latest(ways[0].there, PRODUCER_IDS_TOPIC)
    assert recorded
    assert all(value is not None and b'"alias":"near"' in value for value in recorded.values())
