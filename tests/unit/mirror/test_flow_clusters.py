"""A flow is held to its clusters by their ids: at its start, at each connection, and after a restart."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from math import inf
from threading import Event, Thread

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ClusterChangedError, RetriableError, SameClusterError
from sparkmirror.domain.findings import Severity
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.known_brokers import Meant
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.cluster import Cluster, read_metadata
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.transport import SocketNetwork, hold_to, meant_clusters
from sparkmirror.metrics.looks import ClusterLook
from sparkmirror.mirror.flow_clusters import FlowClusters
from sparkmirror.plan.cluster_findings import CLUSTER_CHANGED, SAME_CLUSTER
from sparkmirror.plan.flow_planning import plan_flow
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from sparkmirror.status.cluster_watch import ClusterWatch
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.cluster_ids import ClusterIds, read_cluster_ids
from sparkmirror.storage.events import EventKind
from sparkmirror.storage.positions import Position, position_record, read_all_positions
from sparkmirror.storage.progress import JobEpoch, TaskLoad, TaskProgress
from tests.memory.server import MemoryServer, serving

A, B = Alias("A"), Alias("B")
ORDERS = TopicPartition("orders", 0)
ATTEMPTS = StateTopic.ATTEMPTS.of(A)
PROGRESS = StateTopic.PROGRESS.of(A)
SYNCS = StateTopic.OFFSET_SYNCS.of(B)
NO_LOAD = TaskLoad(*[0] * 12)


@pytest.fixture
def source() -> Iterator[MemoryServer]:
    with serving("id of A") as server:
        yield server


@pytest.fixture
def target() -> Iterator[MemoryServer]:
    with serving("id of B") as server:
        yield server


def flow_between(source: MemoryServer, target: MemoryServer, **more: str) -> ConfiguredFlow:
    """Each flow as in a process of its own."""
    properties = {
        "clusters": "A, B",
        "A.bootstrap.servers": source.bootstrap_servers,
        "B.bootstrap.servers": target.bootstrap_servers,
        "A->B.enabled": "true",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    configured = configured_flow(
        next(flow for flow in MirrorMakerConfig(Properties(properties)).flows() if flow.flow == Flow(A, B))
    )
    network = SocketNetwork()
    assert configured.source is not None
    connector = replace(
        configured.source,
        source_admin=replace(configured.source.source_admin, network=network),
        target_admin=replace(configured.source.target_admin, network=network),
    )
    return replace(
        configured, source=connector, worker_client=replace(configured.worker_client, network=network)
    )


def clusters_of(flow: ConfiguredFlow, *accepted: Alias) -> FlowClusters:
    assert flow.source is not None
    return FlowClusters(flow, flow.source, accepted)


def begun(flow: ConfiguredFlow, *accepted: Alias) -> FlowClusters:
    """A flow that has begun, and remembers its clusters."""
    clusters = clusters_of(flow, *accepted)
    clusters.require()
    clusters.record(can_remember=True)
    return clusters


def create_state(target: MemoryServer, flow: ConfiguredFlow) -> None:
    for topic in (ATTEMPTS, PROGRESS, flow.worker.offset_topic.name):
        target.call(lambda topic=topic: target.cluster.create(topic, 1))  # type: ignore[misc]  # its default


def store(flow: ConfiguredFlow, offset: int) -> None:
    assert flow.source is not None
    with closing(TopicWriter(flow.worker_client)) as writer:
        record = position_record(flow.source.name, A, ORDERS, Position(offset))
        writer.write(flow.worker.offset_topic.name, [record])


def positions(flow: ConfiguredFlow) -> dict[TopicPartition, int]:
    assert flow.source is not None
    found = read_all_positions(*flow.positions_of(flow.source.name))
    return {partition: position.offset for partition, position in found.items()}


def remembered(flow: ConfiguredFlow) -> ClusterIds | None:
    assert flow.source is not None
    owner = owner_of(flow.worker.offset_topic.name, flow.source.name)
    return read_cluster_ids(flow.worker_client, ATTEMPTS, owner)


def test_a_first_start_remembers_both_ids(source: MemoryServer, target: MemoryServer) -> None:
    flow = flow_between(source, target)
    create_state(target, flow)
    begun(flow)
    assert remembered(flow) == ClusterIds("id of A", "id of B")
    begun(flow_between(source, target))


@pytest.mark.parametrize("topics", [".*", "orders|a.*", "orders"])
def test_one_cluster_under_two_aliases_is_refused_before_anything_is_created(
    source: MemoryServer, topics: str
) -> None:
    source.call(lambda: source.cluster.create("orders", 1))
    clusters = clusters_of(flow_between(source, source, topics=topics))
    if topics == "orders":  # by name nothing is mirrored again and again
        clusters.require()
    else:
        with pytest.raises(SameClusterError, match=r"A and B are one cluster \(its id is id of A\)"):
            clusters.require()
        assert clusters.trouble is not None
    assert source.cluster.topics.keys() == {"orders"}


def test_an_empty_cluster_under_two_aliases_is_refused(source: MemoryServer) -> None:
    with pytest.raises(SameClusterError):
        clusters_of(flow_between(source, source)).require()


def test_another_source_stops_the_flow_with_both_ids(source: MemoryServer, target: MemoryServer) -> None:
    flow = flow_between(source, target)
    create_state(target, flow)
    begun(flow)
    store(flow, 41)
    source.lead_to("id of C")
    again = flow_between(source, target)
    clusters = clusters_of(again)
    for _ in range(2):
        with pytest.raises(
            ClusterChangedError, match=r"A is the cluster id of A, and .* the cluster id of C"
        ):
            clusters.require()
    assert "--accept-cluster A" in str(clusters.trouble)
    assert positions(again) == {ORDERS: 41}


@pytest.mark.parametrize("way", ["accepted", "continue"])
def test_a_person_may_say_that_another_source_is_meant(
    source: MemoryServer, target: MemoryServer, way: str
) -> None:
    flow = flow_between(source, target)
    create_state(target, flow)
    begun(flow)
    store(flow, 41)
    source.lead_to("id of C")
    if way == "accepted":
        again = flow_between(source, target)
        begun(again, A)
    else:
        again = flow_between(source, target, on_cluster_change="continue")
        begun(again)
    assert positions(again) == {}
    assert remembered(again) == ClusterIds("id of C", "id of B")
    begun(flow_between(source, target))  # from now on it is the one meant


def test_acceptance_of_another_alias_is_none(source: MemoryServer, target: MemoryServer) -> None:
    flow = flow_between(source, target)
    create_state(target, flow)
    begun(flow)
    source.lead_to("id of C")
    with pytest.raises(ClusterChangedError):
        begun(flow_between(source, target), B)


def test_every_connection_is_held_to_the_cluster(source: MemoryServer, target: MemoryServer) -> None:
    """Nothing is written to another cluster, whose topics have the same names."""
    flow = flow_between(source, target)
    create_state(target, flow)
    clusters = begun(flow)
    another = target.lead_to("id of C")
    create_state(target, flow)
    with pytest.raises(ClusterChangedError, match=r"B is the cluster id of B, and .* the cluster id of C"):
        store(flow, 41)
    assert all(not log.end for _, log in another.logs())
    clusters.release()
    store(flow, 41)
    assert positions(flow) == {ORDERS: 41}


def test_the_sources_own_id_behind_the_targets_address_is_never_written_to(
    source: MemoryServer, target: MemoryServer
) -> None:
    flow = flow_between(source, target, topics="orders")
    create_state(target, flow)
    begun(flow)
    behind = target.lead_to("id of A")
    create_state(target, flow)
    with pytest.raises(ClusterChangedError):
        store(flow, 41)
    assert all(not log.end for _, log in behind.logs())


def copied(source: MemoryServer, target: MemoryServer, *, stopped: bool) -> None:
    """A mirror of the topic by its name has run, and announced a copy job."""
    flow = flow_between(source, target, topics="orders")
    create_state(target, flow)
    source.call(lambda: source.cluster.create(SYNCS, 1))
    begun(flow)
    assert flow.source is not None
    with closing(TopicWriter(flow.worker_client)) as writer:
        writer.write(PROGRESS, [JobEpoch(flow.source.name, 1, stopped=stopped).to_record()])


@contextmanager
def reporting(flow: ConfiguredFlow, lasts_s: float = inf) -> Iterator[None]:
    """A task of the flow reports again and again."""
    assert flow.source is not None
    name, stopping, ends_at = flow.source.name, Event(), time.monotonic() + lasts_s

    def report() -> None:
        with closing(TopicWriter(flow.worker_client)) as writer:
            while time.monotonic() < ends_at and not stopping.wait(0.05):
                writer.write(PROGRESS, [TaskProgress(name, 0, 1, NO_LOAD, time.time()).to_record()])

    thread = Thread(target=report)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_addresses_that_were_exchanged_are_refused_by_both_ids(
    source: MemoryServer, target: MemoryServer
) -> None:
    copied(source, target, stopped=True)
    there = set(source.cluster.topics)
    exchanged = flow_between(target, source, topics="orders")
    with pytest.raises(ClusterChangedError, match=r"A is the cluster id of A, and .* the cluster id of B: "):
        begun(exchanged)
    with pytest.raises(ClusterChangedError, match=r"B is the cluster id of B, and .* the cluster id of A: "):
        begun(exchanged, A)
    assert findings_of(exchanged, CLUSTER_CHANGED) == [
        (Severity.BLOCKS, "A.bootstrap.servers"),
        (Severity.BLOCKS, "B.bootstrap.servers"),
    ]
    assert set(source.cluster.topics) == there
    create_state(source, exchanged)
    begun(exchanged, A, B)
    assert remembered(exchanged) == ClusterIds("id of B", "id of A")
    begun(flow_between(target, source, topics="orders"))


def test_two_mirrors_may_name_two_clusters_the_other_way_round(
    source: MemoryServer, target: MemoryServer
) -> None:
    copied(source, target, stopped=False)
    other = flow_between(target, source, topics="orders")
    with reporting(flow_between(source, target)):
        assert not findings_of(other, CLUSTER_CHANGED)
        create_state(source, other)
        begun(other)
    assert remembered(other) == ClusterIds("id of B", "id of A")


@pytest.mark.parametrize("last_ms", [0, 150])
def test_exchanged_addresses_of_a_mirror_that_was_killed_are_refused_however_young_its_reports_are(
    source: MemoryServer, target: MemoryServer, last_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The mirror's tasks may report for a moment longer than it lives."""
    caplog.set_level(logging.INFO)
    copied(source, target, stopped=False)
    exchanged = flow_between(target, source, topics="orders")
    with reporting(flow_between(source, target), last_ms / 1000):
        assert exchanged.source is not None
        clusters = FlowClusters(exchanged, exchanged.source, watched_s=1.0)
        with pytest.raises(ClusterChangedError, match=r"A is the cluster id of A, and .* id of B: "):
            clusters.require()
    watched = "A has records of a mirror that copied into it: watching for 1 s whether it still runs"
    assert [line for line in caplog.messages if "watching" in line] == [watched]


def test_the_targets_address_for_the_source_is_refused_by_both_ids(
    source: MemoryServer, target: MemoryServer
) -> None:
    copied(source, target, stopped=True)
    one = flow_between(target, target, topics=".*")
    with pytest.raises(ClusterChangedError, match=r"A is the cluster id of A, and .* the cluster id of B: "):
        begun(one)
    assert (Severity.BLOCKS, "A.bootstrap.servers") in findings_of(one, CLUSTER_CHANGED)
    with pytest.raises(SameClusterError):
        begun(one, A)


def test_the_sources_address_for_the_target_is_refused_also_for_topics_by_name(
    source: MemoryServer, target: MemoryServer
) -> None:
    copied(source, target, stopped=True)
    there = set(source.cluster.topics)
    one = flow_between(source, source, topics="orders")
    with pytest.raises(SameClusterError, match=r"\(its id is id of A\), and B was another before"):
        begun(one)
    assert findings_of(one, SAME_CLUSTER) == [(Severity.BLOCKS, "B.bootstrap.servers")]
    assert set(source.cluster.topics) == there
    create_state(source, one)
    begun(one, B)
    begun(flow_between(source, source, topics="orders"))  # which remembers the one cluster


def findings_of(flow: ConfiguredFlow, kind: str) -> list[tuple[Severity, str]]:
    return [(each.severity, each.subject) for each in plan_flow(flow).findings if each.kind == kind]


def test_a_cluster_that_answers_is_compared_while_the_other_does_not(
    source: MemoryServer, target: MemoryServer
) -> None:
    flow = flow_between(source, target)
    create_state(target, flow)
    assert begun(flow).meant == (A, B)
    source.go_away()
    clusters = clusters_of(flow_between(source, target))
    with pytest.raises(RetriableError):
        clusters.require()
    assert clusters.meant == {B}
    target.cluster.name = "id of C"
    clusters = clusters_of(flow_between(source, target))
    with pytest.raises(ClusterChangedError):
        clusters.require()
    assert not clusters.meant


def test_the_same_cluster_at_its_address_continues(source: MemoryServer, target: MemoryServer) -> None:
    flow = flow_between(source, target)
    create_state(target, flow)
    begun(flow)
    target.call(target.end_connections)
    store(flow, 41)
    assert positions(flow) == {ORDERS: 41}


def test_a_task_is_held_to_the_clusters_of_its_driver(target: MemoryServer) -> None:
    def connection() -> ConnectionSettings:
        addresses = tuple((broker.host, broker.port) for broker in target.brokers)
        return ConnectionSettings(addresses, network=SocketNetwork(), alias="B")

    driver, task = connection(), connection()
    hold_to({driver.bootstrap_servers: Meant("id of B", "B")}, [driver])
    hold_to(meant_clusters([driver]), [task])
    assert read_metadata(task, ()).cluster_id == "id of B"
    target.lead_to("id of C")
    with pytest.raises(ClusterChangedError):
        read_metadata(task, ())


def test_another_cluster_is_an_incident_and_ends_when_the_right_one_answers(target: MemoryServer) -> None:
    addresses = tuple((broker.host, broker.port) for broker in target.brokers)
    settings = ConnectionSettings(addresses, network=SocketNetwork(), alias="B")
    hold_to({addresses: Meant("id of B", "B")}, [settings])
    events: list[tuple[EventKind, str]] = []
    flow = flow_between(target, target).flow
    with closing(Cluster(settings)) as client:
        watch = ClusterWatch(
            flow,
            B,
            settings,
            ask=lambda: client.brokers("a request"),
            note=lambda kind, text, _="": events.append((kind, text)),
        )
        watch.ask()
        assert watch.is_up
        target.lead_to("id of C")
        for _ in range(2):
            watch.ask()
        assert watch.is_up is False
        assert watch.changed is not None
        ((kind, text),) = events
        assert kind is EventKind.INCIDENT
        assert text.startswith("cluster-changed: B is the cluster id of B, and 127.0.0.1:")
        target.lead_to("id of B")
        watch.ask()
        assert watch.look() == ClusterLook(B, is_up=True)
        assert watch.changed is None
