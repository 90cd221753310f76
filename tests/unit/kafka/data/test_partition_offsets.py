"""Partitions without a leader, for the moment or for longer."""

from collections.abc import Callable, Iterator

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets, require_offsets, settled_offsets
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.kafka.wire.error_codes import LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION
from tests.memory.client_run import ClientRun, client_run
from tests.memory.cluster import MemoryCluster
from tests.memory.intercepted_broker import Request, intercept

PARTITION = TopicPartition("A.orders", 0)
LEADERLESS = Metadata(partitions={PARTITION.topic: 1})
LIST_OFFSETS = 2


@pytest.fixture
def run() -> Iterator[ClientRun]:
    with client_run() as run:
        yield run


def moving_leaders(run: ClientRun, times: int) -> tuple[MemoryCluster, list[int]]:
    """A cluster that elects another leader before it answers, as often as that, and the requests it got."""
    cluster, asked = run.cluster("B", brokers=2), list[int]()
    cluster.create(PARTITION.topic)

    def act(request: Request, carry_out: Callable[[], None]) -> None:
        if request.api_key == LIST_OFFSETS:
            asked.append(request.api_key)
            if len(asked) <= times:
                cluster.move_leader(PARTITION)
        carry_out()

    for broker in cluster.brokers:
        intercept(run.network, broker, act)
    return cluster, asked


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_partition_whose_leader_moves_is_asked_for_again(run: ClientRun, times: int) -> None:
    cluster, asked = moving_leaders(run, times)
    settings = ConsumerSettings(run.connection(cluster))
    assert require_offsets(settings, [PARTITION], LATEST) == {PARTITION: 0}
    assert len(asked) == times + 1


def test_a_partition_that_stays_without_leader_is_an_error_after_some_seconds(run: ClientRun) -> None:
    cluster, asked = moving_leaders(run, 1000)
    settings = ConsumerSettings(run.connection(cluster))
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        require_offsets(settings, [PARTITION], LATEST)
    assert 3 < len(asked) < 20


def test_a_topic_that_is_missing_is_not_waited_for(run: ClientRun) -> None:
    cluster, asked = moving_leaders(run, 0)
    settings = ConsumerSettings(run.connection(cluster))
    found = settled_offsets(settings, [TopicPartition("missing", 0)], LATEST)[TopicPartition("missing", 0)]
    assert isinstance(found, KafkaError)
    assert found.code == UNKNOWN_TOPIC_OR_PARTITION
    assert asked == []


def test_error_of_a_partition_without_leader_names_its_cluster() -> None:
    target = ConsumerSettings(ConnectionSettings((("b1", 9092),), alias="B"))
    error = list_offsets(target, [PARTITION], LATEST, LEADERLESS)[PARTITION]
    assert str(error) == "A.orders-0 on B: LEADER_NOT_AVAILABLE"
    assert not isinstance(error, int)
    assert error.code == LEADER_NOT_AVAILABLE


def test_error_names_the_bootstrap_servers_of_a_cluster_without_alias() -> None:
    settings = ConsumerSettings(ConnectionSettings((("b1", 9092), ("::1", 9093))))
    error = list_offsets(settings, [PARTITION], LATEST, LEADERLESS)[PARTITION]
    assert str(error) == "A.orders-0 on b1:9092,[::1]:9093: LEADER_NOT_AVAILABLE"
