"""One of the source's three brokers can't be reached by clients; its cluster goes on without noticing.

Partitions of other leaders are copied, groups of other coordinators are translated, and what is tried again
writes nothing to the target.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Final

import confluent_kafka as confluent
import pytest
from confluent_kafka.admin import AdminClient

from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.copy.copy_plan import OffsetSyncPlan, StatePlan, TaskPlan
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC, StateTopic
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.progress_reader import ProgressReader
from tests.contract.checkpointing import checkpointing
from tests.contract.copying import CONNECTOR, running
from tests.memory.server import MemoryServer, serving
from tests.support.any_cluster import AnyCluster, Listening
from tests.support.broker_data import append, create_topic, ensure_compacted_topic, keyed_of, numbered
from tests.support.connections import connection
from tests.support.proxy import HOST, Proxy, proxied
from tests.support.waiting import await_value

SOURCE, TARGET = Alias("trisource"), Alias("hub")
TOPIC: Final = "away.orders"
REMOTE: Final = f"{SOURCE}.{TOPIC}"
POSITIONS: Final = "away.positions"
SYNCS: Final = f"mm2-offset-syncs.{TARGET}.internal"
PARTITIONS: Final = 6
GROUPS: Final = [f"away-{number}" for number in range(12)]
WAIT_S: Final = 60.0
QUIET_S: Final = 12.0
"""A retry comes every few seconds."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The cluster as clients see it, through a forwarder before each broker."""

    brokers: Sequence[Listening]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)


@pytest.fixture(scope="module")
def three_in_memory() -> Iterator[MemoryServer]:
    with serving("forwarded", brokers=3) as server:
        yield server


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    settings = {"offsets.topic.num.partitions": "12", "offsets.topic.replication.factor": "1"}
    spec = ClusterSpec("forwarded", brokers=3, settings=settings, heap_mb=192)
    with LocalCluster.start(spec, tmp_path_factory.mktemp("forwarded")) as cluster:
        yield cluster


TARGETS: Final = {"three_in_memory": "memory_cluster", "three_brokers": "target_cluster"}
IN_MEMORY: Final = pytest.param("three_in_memory", marks=pytest.mark.memory)


@pytest.fixture(scope="module", params=[IN_MEMORY, "three_brokers"])
def clusters(request: pytest.FixtureRequest) -> tuple[AnyCluster, AnyCluster]:
    """The source with topics and records, and the target."""
    source, target = (request.getfixturevalue(name) for name in (request.param, TARGETS[request.param]))
    create_topic(source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    create_topic(source.bootstrap_servers, SYNCS, config={"cleanup.policy": "compact"})
    for partition in range(PARTITIONS):
        append(source, TOPIC, numbered(100), partition=partition)
    return source, target


@pytest.fixture(scope="module")
def forwarders(clusters: tuple[AnyCluster, AnyCluster]) -> Iterator[list[Proxy]]:
    with proxied(*((HOST, broker.port) for broker in clusters[0].brokers)) as proxies:
        yield proxies


def client(cluster: AnyCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def commit(cluster: AnyCluster, group: str, offset: int) -> None:
    """Commit for all partitions, as an application that is not running now."""
    places = [confluent.TopicPartition(TOPIC, partition, offset) for partition in range(PARTITIONS)]
    admin = client(cluster)

    def committed() -> bool:
        request = [confluent.ConsumerGroupTopicPartitions(group, places)]
        (future,) = admin.alter_consumer_group_offsets(request).values()
        with suppress(confluent.KafkaException):  # a new topic of group offsets may have no leaders yet
            return all(each.error is None for each in future.result(WAIT_S).topic_partitions)
        return False

    await_value(committed, WAIT_S, lambda: f"{group} can't commit")


def leaders(cluster: AnyCluster, topic: str) -> dict[int, int]:
    found = client(cluster).list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    return {number: partition.leader for number, partition in found.items()}


def coordinators(cluster: AnyCluster) -> dict[str, int]:
    admin = client(cluster)
    futures = admin.describe_consumer_groups(GROUPS)
    return {group: future.result(WAIT_S).coordinator.id for group, future in futures.items()}


def translated(target: AnyCluster, group: str) -> dict[int, int]:
    """The offsets that the group has on the target."""
    request = [confluent.ConsumerGroupTopicPartitions(group)]
    admin = client(target)
    (future,) = admin.list_consumer_group_offsets(request).values()
    with suppress(confluent.KafkaException):
        found = future.result(WAIT_S).topic_partitions
        return {
            place.partition: place.offset for place in found if place.topic == REMOTE and place.offset >= 0
        }
    return {}


def ends(target: AnyCluster, partitions: Sequence[int]) -> dict[int, int]:
    """The ends of the copies' logs, which markers move too."""
    consumer = confluent.Consumer(
        {"bootstrap.servers": target.bootstrap_servers, "group.id": "away.ends", "log_level": 0}
    )
    with closing(consumer):
        return {
            partition: consumer.get_watermark_offsets(
                confluent.TopicPartition(REMOTE, partition), timeout=WAIT_S
            )[1]
            for partition in partitions
        }


def plan(source: Forwarded, target: AnyCluster) -> TaskPlan:
    here, there = connection(source), connection(target)
    return TaskPlan(
        flow=Flow(SOURCE, TARGET),
        connector=CONNECTOR,
        task=0,
        job_epoch=1,
        announced_at=0,
        partitions=tuple(CopyPartition(TopicPartition(TOPIC, each), REMOTE) for each in range(PARTITIONS)),
        consumer=ConsumerSettings(here),
        producer=ProducerSettings(there),
        state=StatePlan(there, POSITIONS, StateTopic.PROGRESS.of(SOURCE), StateTopic.ATTEMPTS.of(SOURCE)),
        offset_syncs=OffsetSyncPlan(here, SYNCS, lag_max=0),
    )


class Reports:
    def __init__(self, settings: ConnectionSettings) -> None:
        self._reader = ProgressReader(settings, StateTopic.PROGRESS.of(SOURCE))
        self.of = CONNECTOR
        self.close = self._reader.close

    def now(self) -> Mapping[int, PartitionProgress]:
        found = self._reader.poll(0.05).items()
        return {at.partition: report for (name, at), report in found if name == self.of}

    def await_state(self, partitions: Sequence[int], state: PartitionState) -> None:
        def reached() -> bool:
            reports = self.now()
            return all(each in reports and reports[each].state is state for each in partitions)

        await_value(reached, WAIT_S, lambda: str(self.now()))


def test_the_others_go_on_and_nothing_is_written_for_what_cannot_be_read(
    clusters: tuple[AnyCluster, AnyCluster], forwarders: list[Proxy]
) -> None:
    (source, target), forwarded = clusters, Forwarded(forwarders)
    create_topic(target.bootstrap_servers, REMOTE, partitions=PARTITIONS)
    for name in (
        POSITIONS,
        PRODUCER_IDS_TOPIC,
        StateTopic.PROGRESS.of(SOURCE),
        StateTopic.ATTEMPTS.of(SOURCE),
    ):
        ensure_compacted_topic(target.bootstrap_servers, name)
    ensure_compacted_topic(target.bootstrap_servers, f"{SOURCE}.checkpoints.internal")
    for group in GROUPS:
        commit(source, group, 50)
    led, coordinated = leaders(source, TOPIC), coordinators(source)
    needed = leaders(source, SYNCS)[0]
    away = next(
        node for node in range(3) if node != needed and node in led.values() and node in coordinated.values()
    )
    cut_off = [partition for partition, leader in led.items() if leader == away]
    others = [partition for partition in led if partition not in cut_off]
    groups = [group for group in GROUPS if coordinated[group] != away]
    settings = {
        f"{SOURCE}->{TARGET}.topics": TOPIC,
        "groups": "away-.*",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }
    with (
        checkpointing((SOURCE, forwarded), (TARGET, target), settings),
        closing(Reports(connection(target))) as reports,
    ):
        with running(plan(forwarded, target)):
            reports.await_state(range(PARTITIONS), PartitionState.RUNNING)
            await_value(
                lambda: all(translated(target, group) for group in GROUPS), WAIT_S, lambda: "no groups yet"
            )
            forwarders[away].refuse()
            forwarders[away].cut()
            reports.await_state(cut_off, PartitionState.RETRYING)
            for partition in others:
                append(source, TOPIC, numbered(20, 100), partition=partition)
            for group in groups:
                commit(source, group, 110)

            def moved() -> bool:
                known = [translated(target, group) for group in groups]
                return all(found.get(partition, 0) > 100 for found in known for partition in others)

            await_value(moved, WAIT_S, lambda: str([translated(target, group) for group in groups]))
            assert_nothing_is_written(target, cut_off)
        # A first start finds the broker away: partitions that can't begin are claimed once.
        reports.of = ConnectorName("first start")
        with running(replace(plan(forwarded, target), connector=reports.of)):
            reports.await_state(cut_off, PartitionState.RETRYING)
            reports.await_state(others, PartitionState.RUNNING)
            assert_nothing_is_written(target, cut_off)
            forwarders[away].restore()
            reports.await_state(range(PARTITIONS), PartitionState.RUNNING)
            for partition in range(PARTITIONS):
                append(source, TOPIC, numbered(1, 900), partition=partition)
            await_value(
                lambda: all(keyed_of(target, REMOTE, each)[-1:] == numbered(1, 900) for each in cut_off),
                WAIT_S,
                lambda: "not copied",
            )


def assert_nothing_is_written(target: AnyCluster, partitions: Sequence[int]) -> None:
    before = ends(target, partitions)
    time.sleep(QUIET_S)  # retries come every few seconds
    assert ends(target, partitions) == before
