"""Copying under client quotas of the source and of the target: at their rate, and without an error."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.wire.error_codes import THROTTLING_QUOTA_EXCEEDED
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.contract.copying import Bench, ProgressReports, remote, running, store, stored
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import Keyed, append, create_topic, keyed_of, numbered, topics
from tests.support.client_quotas import quota
from tests.support.cluster_pairs import cluster_pair_of
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.threaded_mirror import threaded_mirror
from tests.support.waiting import await_value

RATE: Final = 100_000
SLOW: Final = 10_000
SIZE: Final = 2_000
RECORDS: Final = 900
BYTES: Final = SIZE * RECORDS
WINDOW_S: Final = 11.0
"""A broker measures a rate over that time, by default."""
TIMEOUT_S: Final = 4.0
"""Throttle times are longer than a request may take."""
START_S: Final = 60.0
BATCHES: Final = {"batch.size": "16000", "linger.ms": "20"}


@pytest.fixture(scope="module")
def real_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Two brokers of their own: a quota of all clients would throttle other tests too."""
    with cluster_pair_of(1, {}, tmp_path_factory.mktemp("quotas")) as pair:
        made = Bench(*pair)
        made.create_state_topics()
        yield made


@pytest.fixture
def watch(real_bench: Bench) -> Iterator[ProgressReports]:
    with closing(ProgressReports(real_bench)) as made:
        yield made


def numbered_values(count: int, first: int = 0) -> list[Keyed]:
    return [(b"%d" % at, (b"%d " % at).ljust(SIZE, b"v")) for at in range(first, first + count)]


@contextmanager
def used_up(bench: Bench, topic: str) -> Iterator[None]:
    """Read the copy for as much as a quota of `SLOW` allows, so that who reads next is throttled."""
    settings = ConsumerSettings(connection(bench.target))
    with closing(PartitionReader(settings, int(SLOW * WINDOW_S) // 2)) as reader:
        for _ in range(2):
            reader.fetch({TopicPartition(remote(topic), 0): 0}, 0.0)
        yield


def fill(bench: Bench, topic: str, records: int = RECORDS) -> list[Keyed]:
    values = numbered_values(records)
    append(bench.source, topic, values, settings=BATCHES)
    return values


def plan_of(bench: Bench, topic: str) -> TaskPlan:
    plan = bench.plan(TopicPartition(topic, 0))
    source, target = (
        replace(settings.connection, request_timeout_s=TIMEOUT_S)
        for settings in (plan.consumer, plan.producer)
    )
    return replace(
        plan,
        consumer=replace(plan.consumer, connection=source),
        producer=replace(plan.producer, connection=target),
    )


def copied(bench: Bench, topic: str) -> list[Keyed]:
    return keyed_of(bench.target, remote(topic), 0)


@pytest.mark.parametrize(
    ("side", "key"), [("target", "producer_byte_rate"), ("source", "consumer_byte_rate")]
)
def test_copying_is_steady_at_a_quota(real_bench: Bench, watch: ProgressReports, side: str, key: str) -> None:
    topic = f"contract.quota.{side}"
    real_bench.create(topic)
    written = fill(real_bench, topic)
    limited: AnyCluster = getattr(real_bench, side)
    states = set()

    def is_whole(report: PartitionProgress) -> bool:
        states.add(report.state)
        return report.records == RECORDS

    with quota(limited, key, RATE):
        began = time.monotonic()
        with running(plan_of(real_bench, topic)):
            watch.await_progress(topic, is_whole)
            elapsed_s = time.monotonic() - began
    assert states == {PartitionState.RUNNING}
    assert BYTES / elapsed_s >= 0.95 * RATE
    assert BYTES / (elapsed_s + WINDOW_S) <= 1.05 * RATE
    assert copied(real_bench, topic) == written


@pytest.mark.parametrize("side", ["source", "target"])
def test_copying_continues_where_a_quota_for_requests_throttles_them_all(
    real_bench: Bench, watch: ProgressReports, side: str
) -> None:
    topic = f"contract.request-quota.{side}"
    real_bench.create(topic)
    written = fill(real_bench, topic, 100)
    limited: AnyCluster = getattr(real_bench, side)
    with quota(limited, "request_percentage", 1.0), running(plan_of(real_bench, topic)):
        report = watch.await_progress(topic, lambda report: report.records == 100)
    assert report.state is PartitionState.RUNNING
    assert copied(real_bench, topic) == written


def test_a_crash_is_resumed_from_under_a_quota_for_reading_the_target(
    real_bench: Bench, watch: ProgressReports
) -> None:
    """Records behind the stored position are read back, after the throttle times that this takes."""
    topic = "contract.quota.crash"
    real_bench.create(topic)
    written = fill(real_bench, topic, 10)
    plan = plan_of(real_bench, topic)
    with running(plan):
        watch.await_progress(topic, lambda report: report.records == 10)
    known = stored(real_bench, topic)
    append(real_bench.source, topic, more := numbered_values(RECORDS, 10), settings=BATCHES)
    with running(plan):
        watch.await_progress(topic, lambda report: report.position == 10 + RECORDS - 1)
    store(real_bench, topic, known)
    append(real_bench.source, topic, last := numbered_values(10, 10 + RECORDS), settings=BATCHES)
    with quota(real_bench.target, "consumer_byte_rate", SLOW), used_up(real_bench, topic), running(plan):
        report = watch.await_progress(topic, lambda report: report.position == 20 + RECORDS - 1)
    assert report.state is PartitionState.RUNNING
    assert copied(real_bench, topic) == [*written, *more, *last]


def test_topics_are_created_one_by_one_under_a_quota_for_the_controller(real_bench: Bench) -> None:
    """Topics that a response refuses for the quota are created later, and no request times out."""
    settings = replace(connection(real_bench.target), request_timeout_s=TIMEOUT_S)
    names = [f"contract.mutation.{number}" for number in range(20)]
    left = {name: TopicCreation(name, 2, 1, {}) for name in names}
    refused = 0
    with quota(real_bench.target, "controller_mutation_rate", 2.0), closing(Admin(settings)) as admin:
        deadline = time.monotonic() + 60.0
        while left and time.monotonic() < deadline:
            for name, error in admin.create_topics(list(left.values())).items():
                if error is None:
                    del left[name]
                else:
                    assert error.code == THROTTLING_QUOTA_EXCEEDED
                    assert error.retriable
                    refused += 1
    assert not left
    assert refused > 0


def test_topics_that_a_quota_lets_through_one_by_one_are_copied_as_they_come(real_bench: Bench) -> None:
    target = real_bench.target
    names = [f"throttled.{number:02}" for number in range(30)]

    def filled() -> set[str]:
        there = topics(target)
        return {name for name in names if f"A.{name}" in there and keyed_of(target, f"A.{name}", 0)}

    create_and_fill(real_bench, names[:1])
    with threaded_mirror(properties_of(real_bench, "throttled.*"), ["B"]):
        await_value(lambda: filled() == {names[0]}, START_S, lambda: str(filled()))
        with quota(target, "controller_mutation_rate", 1.0):
            create_and_fill(real_bench, names[1:])
            await_value(lambda: len(filled()) > 1, START_S, lambda: str(filled()))
            assert not topics(target).keys() >= {f"A.{name}" for name in names}
        await_value(lambda: filled() == set(names), START_S, lambda: str(set(names) - filled()))
    for name in names:
        assert keyed_of(target, f"A.{name}", 0) == numbered(1)


def create_and_fill(bench: Bench, names: list[str]) -> None:
    for name in names:
        create_topic(bench.source.bootstrap_servers, name, partitions=1)
        append(bench.source, name, numbered(1))


def properties_of(bench: Bench, names: str) -> dict[str, str]:
    return {
        **REPLICATION,
        "clusters": "A, B",
        "A.bootstrap.servers": bench.source.bootstrap_servers,
        "B.bootstrap.servers": bench.target.bootstrap_servers,
        "A->B.enabled": "true",
        "A->B.topics": names,
        "heartbeats.replication.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "1",
    }
