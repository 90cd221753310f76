"""A connector's own topics on a cluster in memory: each by itself, and again when it vanishes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import pytest

from sparkmirror.config.admin_plugins import DIRECTLY
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.storage.events import EventKind
from sparkmirror.storage.own_topics import OwnTopic, OwnTopics
from sparkmirror.storage.topic_creation import COMPACTED
from sparkmirror.storage.troubles import Troubles
from tests.memory.server import MemoryServer, serving
from tests.support.connections import connection

EAST = Alias("east")
FLOW = Flow(Alias("west"), EAST)
KEY = "checkpoints.topic.replication.factor"


def own(name: str, replicas: int = 1, **more: object) -> OwnTopic:
    return OwnTopic(EAST, TopicCreation(name, 1, replicas, COMPACTED), KEY, **more)  # type: ignore[arg-type]  # flags


@pytest.fixture
def server() -> Iterator[MemoryServer]:
    with serving(EAST, brokers=2) as server:
        yield server


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def troubles(events: list[str]) -> Troubles:
    def note(kind: EventKind, text: str, about: object = "") -> None:
        if kind is EventKind.INCIDENT:
            assert about == EAST
            events.append(text)

    return Troubles(flow_log(__name__, FLOW), note)


@pytest.fixture
def topics_of(server: MemoryServer, troubles: Troubles) -> Callable[..., OwnTopics]:
    settings = replace(connection(server), alias=EAST)

    def made(*topics: OwnTopic) -> OwnTopics:
        return OwnTopics(topics, settings, DIRECTLY, flow_log(__name__, FLOW), troubles)

    return made


def test_a_refused_topic_keeps_back_no_other(
    server: MemoryServer,
    topics_of: Callable[..., OwnTopics],
    troubles: Troubles,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topics = topics_of(own("first"), own("refused", 3), own("last", 2))
    for _ in range(3):
        topics.ensure()
    assert server.cluster.topics.keys() == {"first", "last"}
    assert topics.lacks("refused")
    assert not topics.lacks("first")
    said = [line for line in caplog.messages if "refused" in line]
    assert said == [troubles.text]
    assert said[0].startswith(
        f"refused not created: refused can't have 3 replicas on east; set {KEY} to what "
    )


def test_a_refused_topic_is_created_when_that_is_possible(
    server: MemoryServer, topics_of: Callable[..., OwnTopics], troubles: Troubles
) -> None:
    topics = topics_of(own("refused", 3))
    topics.ensure()
    server.call(lambda: server.cluster.create("refused", 1))  # by hand
    topics.watch(inf)
    assert troubles.text is None


def test_no_flow_begins_without_a_topic_that_is_needed(
    server: MemoryServer, topics_of: Callable[..., OwnTopics], troubles: Troubles
) -> None:
    topics = topics_of(own("other"), own("needed", 3, is_needed=True), own("ours", 3, takes_default=True))
    with pytest.raises(KafkaError, match="needed can't have 3 replicas on east; set"):
        topics.ensure()
    assert server.cluster.topics.keys() == {"other"}  # one of ours has the right factor later
    assert [(it.what, it.word) for it in troubles.now] == [("needed", "not created"), ("ours", "waiting")]


def test_a_topic_that_java_has_not_takes_the_brokers_default(
    server: MemoryServer, topics_of: Callable[..., OwnTopics], troubles: Troubles
) -> None:
    topics = topics_of(own("ours", 3, is_needed=True, takes_default=True))
    topics.ensure()
    assert server.cluster.topics.keys() == {"ours"}
    assert troubles.text is None


def test_what_vanished_is_created_again_with_an_incident(
    server: MemoryServer, topics_of: Callable[..., OwnTopics], events: list[str]
) -> None:
    topics = topics_of(own("kept"), own("lost", when_remade="positions are written again"))
    topics.ensure()
    server.call(lambda: server.cluster.delete("lost"))
    assert topics.watch(0.0).remade == {"lost"}
    assert events == ["lost had vanished from east and was created again: positions are written again"]
    assert topics.watch(1.0).remade == frozenset()
    assert server.cluster.topics.keys() == {"kept", "lost"}


def test_vanished_topics_are_found_while_another_one_is_refused(
    server: MemoryServer, topics_of: Callable[..., OwnTopics]
) -> None:
    topics = topics_of(own("lost"), own("refused", 3))
    topics.ensure()
    topics.watch(0.0)
    server.call(lambda: server.cluster.delete("lost"))
    assert topics.watch(1.0).remade == {"lost"}
    assert topics.lacks("refused")


@pytest.mark.parametrize(
    ("policy", "partitions", "said"),
    [
        ("compact", 1, None),
        ("delete", 1, "state on east has cleanup.policy=delete instead of compact: kafka-configs.sh "),
        ("compact,delete", 1, "state on east has cleanup.policy=compact,delete instead of compact: "),
        (
            "compact",
            3,
            "state on east has 3 partitions instead of 1, and only the first is used: kafka-topics.sh",
        ),
    ],
)
def test_a_topic_that_somebody_else_created_otherwise_is_named(
    server: MemoryServer,
    topics_of: Callable[..., OwnTopics],
    caplog: pytest.LogCaptureFixture,
    policy: str,
    partitions: int,
    said: str | None,
) -> None:
    server.call(lambda: server.cluster.create("state", partitions, {"cleanup.policy": policy}))
    topics = topics_of(own("state"))
    topics.ensure()
    topics.ensure()
    found = [line for line in caplog.messages if line.startswith("state on east")]
    assert len(found) == (said is not None)
    assert said is None or found[0].startswith(said)


@pytest.mark.parametrize(("minimum", "is_writable"), [("1", True), ("2", True), ("3", False)])
def test_a_topic_with_too_few_replicas_to_be_written_is_a_state_with_the_command(
    server: MemoryServer,
    topics_of: Callable[..., OwnTopics],
    troubles: Troubles,
    minimum: str,
    is_writable: bool,
) -> None:
    """Both brokers of the cluster have a replica."""
    server.call(lambda: server.cluster.create("state", 1, {"min.insync.replicas": minimum}))
    topics = topics_of(own("state"))
    topics.ensure()
    assert (troubles.text is None) is is_writable
    assert not topics.lacks("state")
    if not is_writable:
        said = "state on east can't be written to: min.insync.replicas=3, and it has 2 replicas"
        assert str(troubles.text).startswith(f"state not written: {said}")
        assert str(troubles.text).endswith("--entity-name state --add-config min.insync.replicas=2")
        server.call(server.cluster.topics["state"].config.clear)
        topics.watch(0.0)
        assert troubles.text is None
