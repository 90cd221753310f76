"""Mirrors whose clusters are replaced, or lose topics: clusters are in memory, Spark's tasks are threads."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from sparkmirror.domain.ids import Alias
from sparkmirror.domain.troubles import action_required
from tests.memory.server import MemoryServer, allow_any, serving
from tests.support.broker_data import append, create_topic, keyed, latest, numbered
from tests.support.mirror import one_way
from tests.support.threaded_mirror import threaded_mirror
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

TOPIC: Final = "orders"
COPY: Final = f"A.{TOPIC}"
POSITIONS: Final = "mm2-offsets.A.internal"
EVENTS: Final = "mm2-events.A.internal"
WAIT_S: Final = 60.0
REFRESH_S: Final = 1


@pytest.fixture
def source() -> Iterator[MemoryServer]:
    with serving("id of A") as server:
        fill(server, 0, 100)
        yield server


@pytest.fixture
def target() -> Iterator[MemoryServer]:
    with serving("id of B") as server:
        yield server


def fill(server: MemoryServer, first: int, count: int) -> None:
    if TOPIC not in server.cluster.topics:
        create_topic(server.bootstrap_servers, TOPIC)
    append(server, TOPIC, numbered(count, first))


@contextmanager
def mirroring(
    source: MemoryServer, target: MemoryServer, *accepted: Alias, into: Sequence[str] = ("B",), **more: str
) -> Iterator[Callable[[], str | None]]:
    """Run the flows; what is yielded tells what an operator must do."""
    usual = {"sync_topic_acls_enabled": "false", "refresh_topics_interval_seconds": str(REFRESH_S)}
    properties = one_way(source, target, TOPIC, **{**usual, **more})
    with threaded_mirror(properties, into, accepted) as (mirror, errors):

        def trouble() -> str | None:
            found = action_required(it for look in mirror.looks() for it in look.troubles)
            return str(errors[0]) if errors else None if found is None else found.text

        yield trouble


def await_copied(target: MemoryServer, *parts: tuple[int, int]) -> None:
    expected = [record for first, count in parts for record in numbered(count, first)]
    await_value(
        lambda: COPY in target.cluster.topics and keyed(target, COPY) == expected,
        WAIT_S,
        lambda: f"not {parts}: {[(str(at), log.end) for at, log in target.cluster.logs()]}",
    )


def await_position(target: MemoryServer, offset: int) -> None:
    key = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"orders"}]'

    def stored() -> bytes | None:
        return latest(target, POSITIONS).get(key) if POSITIONS in target.cluster.topics else None

    await_value(lambda: stored() == b'{"offset":%d}' % offset, WAIT_S, lambda: repr(stored()))


def events(target: MemoryServer) -> str:
    return (
        " ".join(str(value) for _, value in keyed(target, EVENTS)) if EVENTS in target.cluster.topics else ""
    )


def delete(target: MemoryServer, *topics: str) -> None:
    for topic in topics:
        target.call(lambda topic=topic: target.cluster.delete(topic))  # type: ignore[misc]  # its default


def test_another_target_gets_nothing_until_the_right_one_answers(
    source: MemoryServer, target: MemoryServer
) -> None:
    with mirroring(source, target) as trouble:
        await_copied(target, (0, 100))
        right = target.cluster
        another = target.lead_to("id of C")
        await_value(lambda: trouble() is not None, WAIT_S, lambda: "no trouble")
        assert str(trouble()).startswith("cluster-changed: B is the cluster id of B, and 127.0.0.1:")
        assert "leads to the cluster id of C: nothing is written there" in str(trouble())
        fill(source, 100, 50)
        target.lead_to(right)
        await_copied(target, (0, 150))
        assert not another.topics
        await_value(lambda: trouble() is None, WAIT_S, lambda: str(trouble()))


def test_another_target_is_mirrored_as_at_a_first_start_if_configured(
    source: MemoryServer, target: MemoryServer
) -> None:
    with mirroring(source, target, on_cluster_change="continue"):
        await_copied(target, (0, 100))
        target.lead_to("id of C")
        fill(source, 100, 50)
        await_copied(target, (0, 150))
        await_position(target, 149)


def test_another_source_is_mirrored_as_at_a_first_start_if_configured(
    source: MemoryServer, target: MemoryServer
) -> None:
    """The other cluster's offsets are not those that the positions speak of."""
    with mirroring(source, target, on_cluster_change="continue"):
        await_copied(target, (0, 100))
        await_position(target, 99)
        source.lead_to("id of D")
        fill(source, 1000, 150)
        await_copied(target, (0, 100), (1000, 150))


def test_another_source_stops_a_restart_until_a_person_accepts_it(
    source: MemoryServer, target: MemoryServer
) -> None:
    with mirroring(source, target):
        await_copied(target, (0, 100))
        await_position(target, 99)
    source.lead_to("id of D")
    fill(source, 1000, 150)
    allow_any(source)
    with mirroring(source, target) as trouble:
        await_value(lambda: "cluster-changed: A is" in str(trouble()), WAIT_S, lambda: str(trouble()))
        await_value(lambda: "cluster-changed" in events(target), WAIT_S, lambda: events(target))
    assert keyed(target, COPY) == numbered(100)
    allow_any(source)
    with mirroring(source, target, Alias("A")):
        await_copied(target, (0, 100), (1000, 150))


def test_an_idle_copy_that_is_deleted_is_found_at_the_next_refresh(
    source: MemoryServer, target: MemoryServer
) -> None:
    with mirroring(source, target, on_topic_recreated="restart"):
        await_copied(target, (0, 100))
        await_position(target, 99)
        delete(target, COPY)
        await_copied(target, (0, 100))
        await_value(
            lambda: "the target topic was deleted and created again" in events(target),
            WAIT_S,
            lambda: events(target),
        )


def test_an_idle_copy_that_is_deleted_is_an_incident_with_its_count(
    source: MemoryServer, target: MemoryServer
) -> None:
    with mirroring(source, target):
        await_copied(target, (0, 100))
        await_position(target, 99)
        delete(target, COPY)
        said = "continuing in the new one from offset 100 of the source, without what was copied before (100 "
        await_value(lambda: said in events(target), WAIT_S, lambda: events(target))
        fill(source, 100, 5)
        await_copied(target, (100, 5))


@pytest.mark.parametrize("lost", ["positions", "all"])
def test_own_topics_that_vanish_are_created_again_and_nothing_comes_twice(
    source: MemoryServer, target: MemoryServer, lost: str
) -> None:
    with mirroring(source, target):
        await_copied(target, (0, 100))
        await_position(target, 99)
        state = [topic for topic in target.cluster.topics if topic.startswith("mm2-")]
        delete(target, *([POSITIONS] if lost == "positions" else state))
        await_position(target, 99)  # from memory
        assert set(state) <= target.cluster.topics.keys()
        said = f"{POSITIONS} had vanished from B and was created again: the positions of all partitions are"
        await_value(lambda: said in events(target), WAIT_S, lambda: events(target))
        fill(source, 100, 50)
        await_copied(target, (0, 150))
    fill(source, 150, 50)
    with mirroring(source, target):
        await_copied(target, (0, 200))


@pytest.mark.parametrize(("topics", "both_ways"), [("orders", True), (".*", False)])
def test_exchanged_addresses_let_nothing_be_written_until_a_person_accepts_them(
    source: MemoryServer, target: MemoryServer, topics: str, *, both_ways: bool
) -> None:
    more = {"A->B.topics": topics, "B->A.topics": topics, "B->A.enabled": str(both_ways).lower()}
    more["emit.heartbeats.enabled"] = "true"
    with mirroring(source, target, into=("A", "B"), **more):
        await_copied(target, (0, 100))
        await_position(target, 99)
        await_value(lambda: "heartbeats" in source.cluster.topics, WAIT_S, lambda: "no heartbeats")
    before = contents(source, target)
    for server in (source, target):
        allow_any(server)
    with mirroring(target, source, into=("A", "B"), **more) as trouble:
        await_value(lambda: "cluster-changed: " in str(trouble()), WAIT_S, lambda: str(trouble()))
        assert "id of A" in str(trouble())
        assert "id of B" in str(trouble())
        time.sleep(3 * REFRESH_S)
        assert dict(contents(source, target).items() - before.items()) == {}
    assert dict(contents(source, target).items() - before.items()) == {}


ONE_WAY: Final = {"B->A.enabled": "false", "emit.heartbeats.enabled": "true"}
BEATS_S: Final = {"emit.heartbeats.interval.seconds": "1"}


def beats(server: MemoryServer) -> int:
    return sum(log.end for at, log in server.cluster.logs() if at.topic == "heartbeats")


def test_a_target_that_comes_late_is_compared_when_it_answers(
    source: MemoryServer, target: MemoryServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Until then the flow waits, and the file's heartbeats, which need only the source, are written."""
    with mirroring(source, target, into=("A", "B"), **ONE_WAY, **BEATS_S):
        await_copied(target, (0, 100))
        await_position(target, 99)
    for server in (source, target):
        allow_any(server)
    fill(source, 100, 50)
    before, beaten = contents(target), beats(source)
    target.go_away()
    with mirroring(source, target, into=("A", "B"), **ONE_WAY, **BEATS_S) as trouble:
        await_value(lambda: beats(source) > beaten + 1, WAIT_S, lambda: "no heartbeats")
        await_value(lambda: "B does not answer: " in caplog.text, WAIT_S, lambda: caplog.text)
        assert trouble() is None
        target.cluster.name = "id of C"  # which has copies of all topics, as a backup that was restored
        target.come_back()
        await_value(lambda: "cluster-changed: B is" in str(trouble()), WAIT_S, lambda: str(trouble()))
        assert "B is the cluster id of B, and 127.0.0.1:" in str(trouble())
        assert "leads to the cluster id of C: nothing is written there" in str(trouble())
        await_quiet(source)
    assert {at: end for (_, at), end in contents(target).items()} == {
        at: end for (_, at), end in before.items()
    }


def await_quiet(server: MemoryServer) -> None:
    """Wait until no heartbeats are written."""
    seen = [beats(server)]

    def is_quiet() -> bool:
        time.sleep(2.5)
        seen.append(beats(server))
        return seen[-1] == seen[-2]

    await_value(is_quiet, WAIT_S, lambda: f"heartbeats: {seen}")


def test_addresses_that_were_exchanged_get_nothing_also_while_one_does_not_answer(
    source: MemoryServer, target: MemoryServer
) -> None:
    with mirroring(source, target, into=("A", "B"), **ONE_WAY, **BEATS_S):
        await_copied(target, (0, 100))
        await_position(target, 99)
    before = contents(source, target)
    for server in (source, target):
        allow_any(server)
    source.go_away()
    with mirroring(target, source, into=("A", "B"), **ONE_WAY, **BEATS_S) as trouble:
        time.sleep(3 * REFRESH_S)
        assert contents(source, target) == before
        source.come_back()
        await_value(lambda: "cluster-changed: " in str(trouble()), WAIT_S, lambda: str(trouble()))
        time.sleep(REFRESH_S)
        assert contents(source, target) == before


def contents(*servers: MemoryServer) -> dict[tuple[str, str], int]:
    return {
        (server.cluster.name, str(at)): log.end for server in servers for at, log in server.cluster.logs()
    }


def test_one_cluster_under_two_aliases_is_refused_before_anything_is_created(source: MemoryServer) -> None:
    with mirroring(source, source, **{"A->B.topics": ".*"}) as trouble:
        await_value(lambda: trouble() is not None, WAIT_S, lambda: "no trouble")
        assert "A and B are one cluster (its id is id of A)" in str(trouble())
    assert source.cluster.topics.keys() == {TOPIC}


def test_own_topics_with_more_replicas_than_brokers_keep_no_data_back(
    source: MemoryServer, target: MemoryServer, caplog: pytest.LogCaptureFixture
) -> None:
    factors = {f"{topic}.topic.replication.factor": "3" for topic in ("offset-syncs", "checkpoints")}
    factors["heartbeats.topic.replication.factor"] = "3"
    factors["emit.heartbeats.enabled"] = "true"
    with mirroring(source, target, **factors) as trouble:
        await_copied(target, (0, 100))
        await_position(target, 99)
        fill(source, 100, 50)
        await_copied(target, (0, 150))
        await_position(target, 149)
        assert "can't have 3 replicas on" in str(trouble())
    refused = [line for line in caplog.messages if "can't have 3 replicas" in line]
    assert sorted(line.rpartition("set ")[2].split()[0] for line in refused) == sorted(
        factor for factor in factors if factor.endswith("factor")
    )


def test_no_flow_begins_without_its_positions_and_the_line_names_the_key(
    source: MemoryServer, target: MemoryServer, caplog: pytest.LogCaptureFixture
) -> None:
    with mirroring(source, target, **{"offset.storage.replication.factor": "3"}) as trouble:
        await_value(lambda: trouble() is not None, WAIT_S, lambda: "no trouble")
        assert "mm2-offsets.A.internal can't have 3 replicas on B; set " in str(trouble())
        assert "(B.offset.storage.replication.factor in mm2.properties)" in str(trouble())
    assert COPY not in target.cluster.topics
    assert len([line for line in caplog.messages if POSITIONS in line]) <= 2
