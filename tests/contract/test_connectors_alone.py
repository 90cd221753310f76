"""Checkpoint and heartbeat connectors alone on a Connect worker, whose clusters, in memory, are replaced."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_settings import worker_settings
from sparkmirror.connect.connector_factory import ConnectorFactory
from sparkmirror.connect.connector_parser import ConnectorParser
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.troubles import action_required
from sparkmirror.mirror.connector_runs import ConnectorRun
from sparkmirror.mirror.flow_clusters import ClustersAlone
from sparkmirror.periodic.jobs import start_all, stop_all
from sparkmirror.storage.cluster_ids import ClusterIds, read_cluster_ids
from sparkmirror.storage.troubles import Troubles
from tests.memory.server import MemoryServer, allow_any, serving
from tests.support.connections import connection
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

ATTEMPTS: Final = "mm2-attempts.A.internal"
OWN_TOPIC: Final = {"Checkpoint": "A.checkpoints.internal", "Heartbeat": "heartbeats"}
KINDS: Final = tuple(OWN_TOPIC)
WAIT_S: Final = 30.0


@pytest.fixture
def source() -> Iterator[MemoryServer]:
    with serving("id of A") as server:
        yield server


@pytest.fixture
def target() -> Iterator[MemoryServer]:
    with serving("id of B") as server:
        yield server


def parser_of(worker: MemoryServer) -> ConnectorParser:
    properties = {"bootstrap.servers": worker.bootstrap_servers, "group.id": "workers"}
    for kind in ("offset", "config", "status"):
        properties[f"{kind}.storage.topic"] = f"connect-{kind}s"
    for part in ("key", "value"):
        properties[f"{part}.converter"] = "org.apache.kafka.connect.converters.ByteArrayConverter"
    return ConnectorParser(Properties(properties), worker_settings(Properties(properties)), {})


def config(kind: str, source: MemoryServer, target: MemoryServer, **more: str) -> ConnectorConfig:
    seconds = ("emit.heartbeats", "emit.checkpoints", "refresh.groups", "sync.group.offsets")
    return {
        "name": "alone",
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": source.bootstrap_servers,
        "target.cluster.bootstrap.servers": target.bootstrap_servers,
        **{f"{job}.interval.seconds": "1" for job in seconds},
        "sync.group.offsets.enabled": "true",
        "heartbeats.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@contextmanager
def running(
    kind: str, source: MemoryServer, target: MemoryServer, worker: MemoryServer | None = None, **more: str
) -> Iterator[ConnectorRun]:
    """Run one connector in a process of its own, of a worker whose topics are on the target by default."""
    for server in (source, target):
        allow_any(server)
    with running_again(kind, source, target, worker, **more) as run:
        yield run


@contextmanager
def running_again(
    kind: str, source: MemoryServer, target: MemoryServer, worker: MemoryServer | None = None, **more: str
) -> Iterator[ConnectorRun]:
    """Run it in the same process as before."""
    factory = ConnectorFactory(parser_of(worker or target), _no_spark, lambda _, __: 1)
    run = factory.prepared_again(config(kind, source, target, **more))()
    start_all(run.threads)
    try:
        yield run
    finally:
        stop_all(run.threads)
        for thread in run.threads:
            thread._thread.join(WAIT_S)  # also while it prepares: clusters must outlive their clients


def _no_spark() -> NoReturn:
    pytest.fail("it copies nothing")


def remembered(kept_on: MemoryServer) -> ClusterIds | None:
    return read_cluster_ids(connection(kept_on), ATTEMPTS, "connect-offsets-alone")


def await_begun(kind: str, target: MemoryServer) -> None:
    topic = OWN_TOPIC[kind]
    await_value(lambda: topic in target.cluster.topics, WAIT_S, lambda: f"no {topic}")
    await_value(lambda: remembered(target) is not None, WAIT_S, lambda: "no ids")


def run_until_begun(kind: str, source: MemoryServer, target: MemoryServer) -> None:
    with running(kind, source, target):
        await_begun(kind, target)


def await_refused(run: ConnectorRun, *parts: str) -> None:
    def trouble() -> str:
        found = action_required(run.troubles())
        return "" if found is None else found.text

    await_value(lambda: all(part in trouble() for part in ("cluster-changed: ", *parts)), WAIT_S, trouble)


def contents(*servers: MemoryServer) -> dict[tuple[str, str], int]:
    return {
        (server.cluster.name, str(at)): log.end for server in servers for at, log in server.cluster.logs()
    }


def await_beats(target: MemoryServer, count: int = 1) -> None:
    def end() -> int:
        return sum(log.end for at, log in target.cluster.logs() if at.topic == "heartbeats")

    await_value(lambda: end() >= count, WAIT_S, lambda: f"{end()} heartbeats")


@pytest.mark.parametrize("kind", KINDS)
def test_both_ids_are_remembered_on_the_target(source: MemoryServer, target: MemoryServer, kind: str) -> None:
    for _ in range(2):
        with running(kind, source, target) as run:
            await_begun(kind, target)
            assert remembered(target) == ClusterIds("id of A", "id of B")
            assert not run.troubles()
    assert target.cluster.topics.keys() == {ATTEMPTS, OWN_TOPIC[kind]}
    assert not source.cluster.topics


@pytest.mark.parametrize("kind", KINDS)
def test_another_source_stops_a_restart_until_the_config_says_that_it_is_meant(
    source: MemoryServer, target: MemoryServer, kind: str
) -> None:
    run_until_begun(kind, source, target)
    before = contents(target)
    source.lead_to("id of C")
    with running(kind, source, target) as run:
        await_refused(run, "A is the cluster id of A, and ", "leads to the cluster id of C")
    assert contents(target) == before
    with running(kind, source, target, on_cluster_change="continue") as run:
        again = ClusterIds("id of C", "id of B")
        await_value(lambda: remembered(target) == again, WAIT_S, lambda: str(remembered(target)))
        assert not run.troubles()


@pytest.mark.parametrize("kind", KINDS)
def test_the_config_may_change_without_a_restart_of_the_worker(
    source: MemoryServer, target: MemoryServer, kind: str
) -> None:
    run_until_begun(kind, source, target)
    source.lead_to("id of C")
    with running_again(kind, source, target) as run:
        await_refused(run, "A is the cluster id of A, and ", "leads to the cluster id of C")
    with running_again(kind, source, target, on_cluster_change="continue"):
        again = ClusterIds("id of C", "id of B")
        await_value(lambda: remembered(target) == again, WAIT_S, lambda: str(remembered(target)))


@pytest.mark.parametrize("kind", KINDS)
def test_another_target_gets_nothing_while_it_runs(
    source: MemoryServer, target: MemoryServer, kind: str
) -> None:
    with running(kind, source, target) as run:
        await_begun(kind, target)
        right = target.cluster
        another = target.lead_to("id of C")
        await_refused(run, "B is the cluster id of B, and ", "leads to the cluster id of C")
        assert not another.topics
        target.lead_to(right)
        await_value(lambda: not run.troubles(), WAIT_S, lambda: str(run.troubles()))


@pytest.mark.parametrize("kind", KINDS)
def test_another_target_than_the_workers_cluster_remembers_gets_nothing_at_a_restart(
    source: MemoryServer, target: MemoryServer, kind: str
) -> None:
    run_until_begun(kind, source, target)
    with serving("id of C") as another:
        with running(kind, source, another, worker=target) as run:
            await_refused(run, "B is the cluster id of B, and ", "leads to the cluster id of C")
        assert not another.cluster.topics


@pytest.mark.parametrize("kind", KINDS)
def test_exchanged_addresses_let_nothing_be_written(
    source: MemoryServer, target: MemoryServer, kind: str
) -> None:
    run_until_begun(kind, source, target)
    before = contents(source, target)
    with running(kind, target, source) as run:
        await_refused(run, "A is the cluster id of A, and ", "leads to the cluster id of B")
    assert contents(source, target) == before


def test_one_cluster_under_two_aliases_gets_no_checkpoints(source: MemoryServer) -> None:
    with running("Checkpoint", source, source, topics=".*") as run:
        said = "A and B are one cluster (its id is id of A)"
        await_value(lambda: said in str(run.troubles()), WAIT_S, lambda: str(run.troubles()))
    assert not source.cluster.topics


def test_heartbeats_need_only_their_target(source: MemoryServer, target: MemoryServer) -> None:
    source.go_away()
    with running("Heartbeat", source, target):
        await_beats(target)
        await_begun("Heartbeat", target)
        assert remembered(target) == ClusterIds("", "id of B")


def test_the_topic_of_the_ids_is_created_again_with_them(source: MemoryServer, target: MemoryServer) -> None:
    parser = parser_of(target)
    connector = parser.parsed(parser.resolved(config("Checkpoint", source, target)))
    assert connector is not None
    on = parser.on(connector.settings.flow)
    clusters = ClustersAlone(on, connector, (), Troubles(logging.getLogger(__name__)))
    *_, watch = clusters._prepare()
    assert remembered(target) == ClusterIds("id of A", "id of B")
    target.call(lambda: target.cluster.delete(ATTEMPTS))
    watch.action()
    assert remembered(target) == ClusterIds("id of A", "id of B")
