"""A flow continues what other connectors copied, or copied into topics of other names. In memory."""

import logging
import random
from collections.abc import Collection
from types import SimpleNamespace
from typing import Final, cast

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import ConnectorName, LogIdentity, TopicPartition
from sparkmirror.domain.incidents import OnNewerPosition, OnTopicRecreated, Reactions
from sparkmirror.domain.topics import ListedTopic, TopicListing
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.mirror.flow_start import FlowStart
from sparkmirror.offsets.sequence_ends import SequenceEnd
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.storage.attempts import Attempt, Stage, attempt_record, deletion_record, owner_of
from sparkmirror.storage.cluster_ids import ClusterIds, cluster_ids_record
from sparkmirror.storage.positions import Position, forgetting, position_record, read_positions
from tests.memory.cluster import MemoryCluster
from tests.memory.stage import NEAR, REMOTE, TOPIC, Shape
from tests.memory.stage import Stage as Clusters

ATTEMPTS_TOPIC: Final = "mm2-attempts.near.internal"
ONE, OTHER = ConnectorName("one"), ConnectorName("other")
AT: Final = TopicPartition(TOPIC, 0)
PRODUCER: Final = ProducerId(9, 0)


class World:
    """Connectors `one` and `other` of one flow. Each record is a second newer than the one before."""

    def __init__(self) -> None:
        self.clusters = Clusters(random.Random(1), Shape(partitions=1))
        self.clusters.target.create(ATTEMPTS_TOPIC, 1, {"cleanup.policy": "compact"})
        plan = self.clusters.plan()
        self.client, self.positions = plan.state.connection, plan.state.positions_topic
        self.flow = plan.flow
        self.now_ms = 1_000_000
        self.lost: Collection[str] = ()
        """The topics whose positions were found lost at the last start."""

    @property
    def logs(self) -> LogIdentity:
        source, target = self.clusters.source.topics[TOPIC], self.clusters.target.topics[REMOTE]
        return LogIdentity(source.id.bytes, 0, target.id.bytes)

    def _write(self, topic: str, record: LogRecord) -> None:
        self.now_ms += 1000
        writer = TopicWriter(self.client)
        writer.write(topic, [record._replace(timestamp_ms=self.now_ms)])
        writer.close()

    def stores(
        self,
        name: ConnectorName,
        offset: int,
        logs: LogIdentity | None = None,
        topic: str | None = None,
    ) -> None:
        """The connector stores that this offset is its next one."""
        state = ProducerState(ProducerId(7, 0), 0, 0)
        position = Position(offset - 1, state, logs or self.logs)
        self._write(topic or self.positions, position_record(name, NEAR, AT, position))

    def remembers_clusters(self, owner: str) -> None:
        """Record what every flow records among the attempts, also where transactions replace them."""
        self._write(ATTEMPTS_TOPIC, cluster_ids_record(owner, ClusterIds("near", "far")))

    def alters(self, name: ConnectorName, offset: int) -> None:
        self._write(self.positions, position_record(name, NEAR, AT, Position(offset - 1)))

    def resets(self, name: ConnectorName) -> None:
        self._write(self.positions, forgetting(name, NEAR, AT))

    def attempts(
        self,
        owner: str,
        offset: int,
        stage: Stage = Stage.CLOSED,
        producer: ProducerId = PRODUCER,
        positions_id: bytes = b"",
    ) -> None:
        ends = () if stage is Stage.CLAIMED else (SequenceEnd(0, offset, 0),)
        logs = self.logs._replace(source_epoch=-1)
        attempt = Attempt(producer, 1, stage, offset, ends, logs=logs, positions_id=positions_id)
        self._write(ATTEMPTS_TOPIC, attempt_record(owner, AT, attempt))

    def deletes(self, owner: str, producer: ProducerId) -> None:
        self._write(ATTEMPTS_TOPIC, deletion_record(owner, AT, producer))

    def start(
        self,
        name: ConnectorName,
        reaction: OnNewerPosition = OnNewerPosition.CONTINUE,
        on_topic_recreated: OnTopicRecreated = OnTopicRecreated.RECORD,
        remote: str = REMOTE,
    ) -> int | None:
        """Return where the connector begins: the next offset, None if it has no position."""
        where = self.client, self.positions
        on = SimpleNamespace(
            worker_client=self.client,
            flow=self.flow,
            worker=SimpleNamespace(offset_topic=SimpleNamespace(name=self.positions)),
            positions_of=lambda connector: (*where, connector, NEAR),
        )
        reactions = Reactions(on_topic_recreated=on_topic_recreated, on_newer_position=reaction)
        settings = SimpleNamespace(preserved_topics=None, copying=SimpleNamespace(reactions=reactions))
        consumer = ConsumerSettings(self.client)
        connector = SimpleNamespace(name=name, settings=settings, consumer_of=lambda _: consumer)
        start = FlowStart(
            cast("FlowWorker", on), cast("ConfiguredSource", connector), flow_log("test", self.flow)
        )
        start.look_back([(TOPIC, remote)], listing(self.clusters.source), listing(self.clusters.target))
        self.lost = start.lost
        found = read_positions(*where, name, NEAR, [AT]).get(AT)
        return None if found is None else found.offset + 1


def listing(cluster: MemoryCluster) -> TopicListing:
    return TopicListing(
        {name: ListedTopic(len(topic.partitions), topic.id.bytes) for name, topic in cluster.topics.items()}
    )


@pytest.fixture
def world() -> World:
    return World()


def test_an_old_name_that_comes_back_continues_where_the_other_has_stopped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    world.stores(ONE, 100)
    world.stores(OTHER, 600)
    assert world.start(ONE) == 600
    assert "other has copied orders since, 500 offsets further than this connector" in caplog.text


def test_a_new_name_continues_where_the_other_has_stopped(world: World) -> None:
    world.stores(ONE, 100)
    assert world.start(OTHER) == 100


def test_a_connector_whose_offsets_were_in_another_topic_is_known_by_its_attempts(world: World) -> None:
    world.stores(ONE, 100)
    world.attempts(owner_of("offsets-between", ONE), 600)
    assert world.start(ONE) == 600


@pytest.mark.parametrize("between", ["offsets-between", "offsets-between-one"])
def test_transactional_positions_in_another_topic_are_known_without_attempts(
    world: World, between: str
) -> None:
    world.clusters.target.create(between, 1, {"cleanup.policy": "compact"})
    world.stores(ONE, 100)
    world.remembers_clusters(owner_of(world.positions, ONE))
    world.remembers_clusters(owner_of(between, ONE))
    world.stores(ONE, 600, topic=between)
    assert world.start(ONE) == 600


@pytest.mark.parametrize("what", ["deleted", "older", "of another source", "no offsets topic"])
def test_another_topic_of_offsets_that_says_nothing(world: World, what: str) -> None:
    world.remembers_clusters(owner_of("offsets-between", ONE))
    if what != "deleted":
        world.clusters.target.create("offsets-between", 1, {"cleanup.policy": "compact"})
    if what == "older":
        world.stores(ONE, 600, topic="offsets-between")
    elif what == "of another source":
        world.stores(ONE, 600, world.logs._replace(source_id=b"x" * 16), "offsets-between")
    world.stores(ONE, 100)
    assert world.start(ONE) == 100


def test_who_has_recorded_last_knows_best(world: World) -> None:
    world.stores(OTHER, 600)
    world.stores(ONE, 100)
    assert world.start(ONE) == 100
    assert world.start(OTHER) == 600, "further than what is newer"


@pytest.mark.parametrize("own", [0, 50, 700])
def test_offsets_that_were_altered_since_are_meant(world: World, own: int) -> None:
    world.stores(ONE, 100)
    world.stores(OTHER, 600)
    world.alters(ONE, own or 1)
    assert world.start(ONE) == (own or 1)


def test_offsets_that_were_reset_since_are_meant(world: World) -> None:
    world.stores(ONE, 100)
    world.stores(OTHER, 600)
    world.resets(ONE)
    assert world.start(ONE) is None


def test_own_attempts_count_as_what_was_recorded_last(world: World) -> None:
    world.stores(ONE, 100)
    world.stores(OTHER, 600)
    world.attempts(owner_of(world.positions, ONE), 150, Stage.OPEN)
    assert world.start(ONE) == 100, "of the attempt itself the task knows more"


@pytest.mark.parametrize(
    ("reaction", "what"),
    [
        (OnNewerPosition.CONTINUE, "copying continues where the last attempts ended"),
        (OnNewerPosition.REPEAT, "what was copied comes a second time"),
    ],
)
def test_positions_that_are_lost_with_their_topic_are_told(
    world: World, caplog: pytest.LogCaptureFixture, reaction: OnNewerPosition, what: str
) -> None:
    caplog.set_level(logging.WARNING)
    world.attempts(owner_of(world.positions, ONE), 150, positions_id=b"x" * 16)
    assert world.start(ONE, reaction) is None, "of the attempt itself the task knows more"
    assert f"the positions of orders are lost with their topic, which was deleted: {what}" in caplog.text
    assert world.lost == ({TOPIC} if reaction is OnNewerPosition.CONTINUE else ())


@pytest.mark.parametrize("what", ["same topic", "not known", "another copy", "stored", "reset"])
def test_positions_are_not_lost(world: World, caplog: pytest.LogCaptureFixture, what: str) -> None:
    caplog.set_level(logging.WARNING)
    known = world.clusters.target.topics[world.positions].id.bytes
    ids = {"same topic": known, "not known": b""}
    world.attempts(owner_of(world.positions, ONE), 150, positions_id=ids.get(what, b"x" * 16))
    if what == "another copy":
        world.clusters.replace_topic(world.clusters.target, REMOTE)
    elif what == "stored":
        world.stores(ONE, 100)
    elif what == "reset":
        world.resets(ONE)
    assert world.start(ONE) == (100 if what == "stored" else None)
    assert not world.lost
    assert caplog.text == ""


@pytest.mark.parametrize("side", ["source", "target"])
def test_places_in_other_topics_of_the_name_say_nothing(world: World, side: str) -> None:
    world.stores(ONE, 100)
    other = {"source": world.logs._replace(source_id=b"x" * 16), "target": world.logs._replace(target_id=b"")}
    world.stores(OTHER, 600, other[side])
    assert world.start(ONE) == 100


def test_a_claim_and_a_deleted_attempt_say_nothing(world: World) -> None:
    between = owner_of("offsets-between", ONE)
    world.stores(ONE, 100)
    world.attempts(between, 600)
    world.deletes(between, PRODUCER)
    world.attempts(between, 700, Stage.CLAIMED, ProducerId(9, 1))
    assert world.start(ONE) == 100


def test_what_is_to_be_repeated_is_told_with_its_number(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    world.stores(ONE, 100)
    world.stores(OTHER, 600)
    assert world.start(ONE, OnNewerPosition.REPEAT) == 100
    assert "500 offsets further than this connector: they come a second time" in caplog.text


@pytest.mark.parametrize(
    ("reaction", "what"),
    [
        (OnTopicRecreated.RECORD, "near__orders begins at the stored position, and lacks what is before it"),
        (OnTopicRecreated.RESTART, "near__orders gets all that the source has"),
        (OnTopicRecreated.FAIL, "near__orders gets nothing while on.topic.recreated is fail"),
    ],
)
def test_a_changed_naming_is_told_with_what_both_topics_have(
    world: World, caplog: pytest.LogCaptureFixture, reaction: OnTopicRecreated, what: str
) -> None:
    caplog.set_level(logging.WARNING)
    world.stores(ONE, 100)
    assert world.start(ONE) == 100
    assert caplog.text == ""
    world.clusters.target.create("near__orders", 1)
    assert world.start(ONE, on_topic_recreated=reaction, remote="near__orders") == 100
    assert "orders was mirrored to near.orders, which keeps what it has and gets nothing more" in caplog.text
    assert what in caplog.text


def test_a_topic_that_is_gone_was_deleted(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    world.stores(ONE, 100)
    world.clusters.target.delete(REMOTE)
    world.clusters.target.create(REMOTE, 1)
    assert world.start(ONE) == 100
    assert caplog.text == ""
