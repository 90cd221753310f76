"""Two flows from two clusters into one topic: each copies its own records, and verify compares its own."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, Final

import pytest

from sparkmirror.copy.copy_plan import StatePlan, TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset, ProducerSettings
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC, StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.positions import Position, position_record, read_positions
from sparkmirror.storage.producer_id_topic import WriterDirectory
from sparkmirror.storage.progress import PartitionState
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.verify.range_comparison import Sides, verify_range
from sparkmirror.verify.range_planning import MirroredPartition, plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.contract.copying import CONNECTOR, running
from tests.memory.server import serving
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import (
    Keyed,
    append,
    create_topic,
    ensure_compacted_topic,
    keyed_of,
    numbered,
)
from tests.support.connections import connection
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
POSITIONS: Final = "fan-in.positions"
"""One topic for both flows, as `offset.storage.topic` may name it: positions hold their cluster's alias."""
SAME_MS: Final = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Inflow:
    source: AnyCluster
    target: AnyCluster
    alias: Alias

    def plan(self, topic: str, **consumer: Any) -> TaskPlan:
        target = connection(self.target)
        return TaskPlan(
            flow=Flow(self.alias, Alias("hub")),
            connector=CONNECTOR,
            task=0,
            job_epoch=1,
            announced_at=0,
            partitions=(CopyPartition(TopicPartition(topic, 0), topic),),
            consumer=ConsumerSettings(connection(self.source), **consumer),
            producer=ProducerSettings(target),
            state=StatePlan(
                target, POSITIONS, StateTopic.PROGRESS.of(self.alias), StateTopic.ATTEMPTS.of(self.alias)
            ),
            offset_syncs=None,
            names_show_origin=False,
        )

    def position(self, topic: str) -> Position:
        at = TopicPartition(topic, 0)
        return read_positions(connection(self.target), POSITIONS, CONNECTOR, self.alias, [at])[at]

    def store(self, topic: str, position: Position) -> None:
        writer = TopicWriter(connection(self.target))
        writer.write(POSITIONS, [position_record(CONNECTOR, self.alias, TopicPartition(topic, 0), position)])
        writer.close()

    def verified(self, topic: str, **consumer: Any) -> Comparison:
        here, there = connection(self.source), connection(self.target)
        others = WriterDirectory(there, here).from_elsewhere()
        flow = Flow(self.alias, Alias("hub"))
        sides = Sides(flow, ConsumerSettings(here, **consumer), ConsumerSettings(there), others=others)
        mirrored = MirroredPartition(CopyPartition(TopicPartition(topic, 0), topic), self.position(topic))
        return sum(map(verify_range, plan_ranges(sides, [mirrored])), Comparison())


@pytest.fixture(scope="module")
def memory_trio() -> Iterator[Sequence[AnyCluster]]:
    with serving("one") as one, serving("two") as two, serving("hub") as hub:
        yield one, two, hub


@pytest.fixture(scope="module")
def real_trio(
    source_cluster: AnyCluster, frail_cluster: AnyCluster, target_cluster: AnyCluster
) -> Sequence[AnyCluster]:
    return source_cluster, frail_cluster, target_cluster


@pytest.fixture(scope="module", params=[pytest.param("memory_trio", marks=pytest.mark.memory), "real_trio"])
def inflows(request: pytest.FixtureRequest) -> tuple[Inflow, Inflow]:
    one, two, hub = request.getfixturevalue(request.param)
    names = [
        state.of(Alias(alias))
        for alias in ("one", "two")
        for state in (StateTopic.PROGRESS, StateTopic.ATTEMPTS)
    ]
    for name in (POSITIONS, PRODUCER_IDS_TOPIC, *names):
        ensure_compacted_topic(hub.bootstrap_servers, name)
    return Inflow(one, hub, Alias("one")), Inflow(two, hub, Alias("two"))


def await_count(inflow: Inflow, topic: str, count: int) -> list[Keyed]:
    seen: list[Keyed] = []

    def arrived() -> bool:
        seen[:] = keyed_of(inflow.target, topic, 0)
        return len(seen) >= count

    await_value(arrived, WAIT_S, lambda: f"{len(seen)} of {count} records of {topic}")
    return seen


def created(inflows: Sequence[Inflow], topic: str) -> None:
    for cluster in (*(each.source for each in inflows), inflows[0].target):
        create_topic(cluster.bootstrap_servers, topic)


def test_neither_flow_stops_the_other(inflows: tuple[Inflow, Inflow]) -> None:
    """Both write all the time, begin again, and copy nothing twice after a crash."""
    topic, (one, two) = "fan-in.live", inflows
    created(inflows, topic)
    mine: dict[Alias, list[Keyed]] = {one.alias: [], two.alias: []}
    before: dict[Alias, Position] = {}
    for turn in range(3):
        if turn == 2:  # positions are older than what was copied
            for inflow in inflows:
                inflow.store(topic, before[inflow.alias])
        with ExitStack() as flows:
            for inflow in inflows:
                flows.enter_context(running(inflow.plan(topic)))
            for number in range(4):
                for at, inflow in enumerate(inflows):
                    new = numbered(5, 1000 * at + 100 * turn + 10 * number)
                    append(inflow.source, topic, new)
                    mine[inflow.alias] += new
                there = await_count(one, topic, sum(map(len, mine.values())))
        if turn == 0:
            before = {inflow.alias: inflow.position(topic) for inflow in inflows}
    states = [inflow.position(topic).producer for inflow in inflows]
    assert len({state.producer.id for state in states if state is not None}) == 2, "they fence each other"
    there = keyed_of(one.target, topic, 0)
    for records in mine.values():
        assert [record for record in there if record in records] == records
    assert len(there) == sum(map(len, mine.values()))


def test_verify_compares_the_records_of_its_own_flow(inflows: tuple[Inflow, Inflow]) -> None:
    """Also where both sources have equal records."""
    topic, (one, two) = "fan-in.verified", inflows
    created(inflows, topic)
    for inflow in inflows:
        append(inflow.source, topic, numbered(100), timestamp_ms=SAME_MS)
    append(two.source, topic, numbered(300, 1000), timestamp_ms=SAME_MS)
    with running(one.plan(topic)), running(two.plan(topic)):
        await_count(one, topic, 500)
        for inflow in inflows:
            append(inflow.source, topic, numbered(20, 100), timestamp_ms=SAME_MS)
        await_count(one, topic, 540)
    assert one.verified(topic) == Comparison(equal=120)
    assert two.verified(topic) == Comparison(equal=420)


def test_verify_finds_what_a_flow_lacks_beside_another(inflows: tuple[Inflow, Inflow]) -> None:
    """A record that only the other flow has copied is missing, however equal it is."""
    topic, (one, two) = "fan-in.missing", inflows
    created(inflows, topic)
    append(one.source, topic, numbered(10), timestamp_ms=SAME_MS)
    append(two.source, topic, numbered(11), timestamp_ms=SAME_MS)
    with running(one.plan(topic)), running(two.plan(topic)):
        await_count(one, topic, 21)
    append(one.source, topic, numbered(1, 10), timestamp_ms=SAME_MS)
    position = one.position(topic)
    one.store(topic, Position(10, producer=position.producer))
    found = one.verified(topic)
    assert (found.equal, found.counts) == (10, {"missing": 1})


def test_verify_counts_what_a_late_start_has_left_out(inflows: tuple[Inflow, Inflow]) -> None:
    topic, (one, _) = "fan-in.late", inflows
    created(inflows, topic)
    append(one.source, topic, numbered(30))
    with running(one.plan(topic, offset_reset=OffsetReset.LATEST)):
        await_value(lambda: _is_running(one, topic), WAIT_S, lambda: "not begun")
        append(one.source, topic, numbered(20, 30))
        await_count(one, topic, 20)
    assert one.verified(topic, offset_reset=OffsetReset.LATEST) == Comparison(equal=20, left_out=30)


def _is_running(inflow: Inflow, topic: str) -> bool:
    with closing(ProgressReader(connection(inflow.target), StateTopic.PROGRESS.of(inflow.alias))) as reader:
        report = reader.poll(0.5).get((CONNECTOR, TopicPartition(topic, 0)))
        return report is not None and report.state is PartitionState.RUNNING and report.position == 29
