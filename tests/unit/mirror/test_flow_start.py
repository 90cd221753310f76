"""`auto.offset.reset` applies to what was there at the first start, on clusters in memory."""

import logging
import random
from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Final, cast

import pytest

from sparkmirror.domain.client_settings import OffsetReset, StartTime
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.start_at import StartAt, parse_start_at
from sparkmirror.domain.topics import ListedTopic, TopicListing
from sparkmirror.mirror.flow_start import FlowStart
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.plan.backlog import backlog
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.setup.new_partitions import NewPartitions
from sparkmirror.storage.attempts import owner_of
from tests.memory.client_run import OneFault
from tests.memory.network import Fate
from tests.memory.stage import TOPIC, Shape, Stage

ATTEMPTS_TOPIC: Final = "mm2-attempts.near.internal"
OTHER: Final = "other"


class World:
    """A source of two topics, `orders` and `other`, and starts of a flow that selects some of them."""

    def __init__(self, policy: OffsetReset = OffsetReset.LATEST, time: StartTime | None = None) -> None:
        self.stage = Stage(random.Random(1), Shape(partitions=2))
        self.stage.target.create(ATTEMPTS_TOPIC, 1, {"cleanup.policy": "compact"})
        self.stage.source.create(OTHER, 2)
        self.has_ids = True
        plan = self.stage.plan()
        topic = SimpleNamespace(name=plan.state.positions_topic)
        self.on = cast(
            "FlowWorker",
            SimpleNamespace(
                worker_client=plan.state.connection,
                flow=plan.flow,
                worker=SimpleNamespace(offset_topic=topic),
                positions_of=lambda name: (plan.state.connection, topic.name, name, plan.flow.source),
            ),
        )
        consumer = replace(plan.consumer, offset_reset=policy, start_time=time)
        self.connector = cast(
            "ConfiguredSource", SimpleNamespace(name=plan.connector, consumer_of=lambda _: consumer)
        )

    @property
    def listing(self) -> TopicListing:
        topics = self.stage.source.topics
        ids = {name: topic.id.bytes if self.has_ids else b"" for name, topic in topics.items()}
        return TopicListing(
            {name: ListedTopic(len(topic.partitions), ids[name]) for name, topic in topics.items()}
        )

    def start(self) -> FlowStart:
        return FlowStart(self.on, self.connector, flow_log("test", self.on.flow))

    def new(self, start: FlowStart, selected: Collection[str], *, can_remember: bool = True) -> set[str]:
        listing = self.listing
        partitions = [
            CopyPartition(TopicPartition(topic, number), topic)
            for topic in selected
            for number in range(listing.counts.get(topic, 0))
        ]
        marked = start.marked(partitions, listing, selected, can_remember=can_remember)
        assert [each.source for each in marked] == [each.source for each in partitions]
        return {str(each.source) for each in marked if each.is_new}

    def grow(self, topic: str, count: int) -> None:
        self.stage.source.grow(self.stage.source.topics[topic], count)


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_new_at_the_first_start_nor_while_nothing_appears(world: World) -> None:
    start = world.start()
    assert world.new(start, [TOPIC]) == world.new(start, [TOPIC]) == set()
    assert world.new(world.start(), [TOPIC]) == set()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("has_ids", [False, True])
def test_what_appears_later_is_new_whether_the_mirror_runs_or_not(*, restarts: bool, has_ids: bool) -> None:
    world = World()
    world.has_ids = has_ids
    start = world.start()
    world.new(start, [TOPIC, "new"])
    world.grow(TOPIC, 4)
    world.stage.source.create("new", 1)
    start = world.start() if restarts else start
    assert world.new(start, [TOPIC, "new"]) == {f"{TOPIC}-2", f"{TOPIC}-3", "new-0"}
    assert world.new(start, [TOPIC, "new"]) == {f"{TOPIC}-2", f"{TOPIC}-3", "new-0"}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_recreated_topic_is_new(world: World, *, restarts: bool) -> None:
    start = world.start()
    world.new(start, [TOPIC])
    world.stage.replace_topic(world.stage.source, TOPIC)
    start = world.start() if restarts else start
    assert world.new(start, [TOPIC]) == {f"{TOPIC}-0", f"{TOPIC}-1"}


def test_a_topic_that_a_changed_filter_selects_is_not_new(world: World) -> None:
    start = world.start()
    world.new(start, [TOPIC])
    world.stage.source.create("later", 1)
    world.grow(OTHER, 3)
    world.new(start, [TOPIC])
    assert world.new(world.start(), [TOPIC, OTHER, "later"]) == set()


def test_a_selected_topic_that_could_not_be_mirrored_is_new_when_it_can(world: World) -> None:
    start = world.start()
    world.new(start, [TOPIC])
    world.stage.source.create("blocked", 1)
    start.marked([], world.listing, [TOPIC, "blocked"], can_remember=True)
    assert world.new(world.start(), [TOPIC, "blocked"]) == {"blocked-0"}


def test_only_changes_are_written(world: World) -> None:
    start = world.start()
    log = world.stage.target.log(TopicPartition(ATTEMPTS_TOPIC, 0))
    world.new(start, [TOPIC])
    end = log.end
    world.new(start, [TOPIC])
    world.grow(TOPIC, 4)
    world.new(world.start(), [TOPIC])
    assert log.end == end
    world.grow(OTHER, 3)
    world.new(start, [TOPIC])
    assert log.end == end + 1


def test_earliest_asks_for_nothing() -> None:
    world = World(OffsetReset.EARLIEST)
    assert world.new(world.start(), [TOPIC]) == set()
    assert world.stage.target.log(TopicPartition(ATTEMPTS_TOPIC, 0)).end == 0


def test_without_the_right_to_remember_the_policy_decides(world: World) -> None:
    world.new(world.start(), [TOPIC], can_remember=False)
    world.grow(TOPIC, 4)
    assert world.new(world.start(), [TOPIC], can_remember=False) == set()


def test_an_answer_that_may_change_is_waited_for(world: World) -> None:
    world.stage.network.faults = faults = OneFault()
    faults.inject(0, Fate.REQUEST_LOST)
    start = world.start()
    try:
        world.new(start, [TOPIC])
    except RetriableError:
        assert world.new(start, [TOPIC]) == set()
    world.grow(TOPIC, 3)
    assert world.new(start, [TOPIC]) == {f"{TOPIC}-2"}


def test_what_latest_leaves_out_is_counted_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    world.stage.write(0, 5)
    world.stage.write(1, 2)
    start = world.start()
    world.new(start, [TOPIC])
    world.new(start, [TOPIC])
    assert caplog.text.count("latest leaves out 7 records of orders") == 1


def test_what_is_left_out_is_told_when_its_topic_can_be_copied_at_last(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker may show a created topic late: the first refresh then has no partition that is ready."""
    caplog.set_level(logging.WARNING)
    world.stage.write(0, 5)
    world.stage.write(1, 2)
    start = world.start()
    start.marked([], world.listing, [TOPIC], can_remember=True)
    assert not caplog.text
    assert world.new(start, [TOPIC]) == set()
    assert world.new(start, [TOPIC]) == set()
    assert caplog.text.count("latest leaves out 7 records of orders") == 1


@pytest.mark.parametrize(
    ("start", "begins", "left_out"),
    [
        (StartAt(OffsetReset.EARLIEST), (0, 0), {}),
        (StartAt(OffsetReset.LATEST), (5, 0), {0: 5}),
        (StartAt(OffsetReset.NONE), (None, 0), {}),
        (parse_start_at("1970-01-01"), (0, 0), {}),
        (parse_start_at("9999-01-01"), (5, 0), {0: 5}),
    ],
)
def test_a_plan_begins_where_a_start_does(
    start: StartAt, begins: tuple[int | None, int], left_out: dict[int, int]
) -> None:
    world = World(*start)
    world.new(world.start(), [TOPIC])
    world.stage.write(0, 5)
    world.grow(TOPIC, 3)
    partitions = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 2)]
    new = NewPartitions(world.on, world.connector).among(partitions, world.listing)
    left = backlog(world.on, world.connector, partitions, new)
    assert tuple(left.begins.get(at) for at in partitions) == begins
    assert {at.partition: count for at, count in left.left_out.items()} == left_out


def test_what_has_appeared_since_the_first_start_under_another_name_is_new(world: World) -> None:
    world.new(world.start(), [TOPIC])
    world.grow(TOPIC, 3)
    partitions = [TopicPartition(TOPIC, number) for number in range(3)]
    renamed = cast(
        "ConfiguredSource", SimpleNamespace(name="renamed", consumer_of=world.connector.consumer_of)
    )
    heir = NewPartitions(world.on, renamed)
    assert heir.among(partitions, world.listing) == (), "a first start of its own"
    heir = NewPartitions(world.on, renamed)
    heir.predecessor = owner_of(world.on.worker.offset_topic.name, world.connector.name)
    assert heir.among(partitions, world.listing) == {partitions[2]}
    heir.remember(world.listing, [TOPIC])
    again = NewPartitions(world.on, renamed)
    assert again.among(partitions, world.listing) == {partitions[2]}, "it has records of its own now"
