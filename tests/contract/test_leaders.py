"""One of three brokers is killed: leaders move, and a leader without in-sync replicas needs `acks=1`."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka.admin import NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.event_loop import WAIT_S, reading, writing, written_continuously
from tests.support.broker_data import admin, keyed_of, numbered
from tests.support.connections import connection
from tests.support.waiting import await_value

NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def losing_first_broker(trio: LocalCluster) -> Iterator[LocalCluster]:
    """The trio, whose first broker is started again after the test."""
    yield trio
    trio.start_broker(0)


def test_reader_and_writer_follow_leaders_and_in_sync_replicas(losing_first_broker: LocalCluster) -> None:
    moved = replicated(losing_first_broker, "contract.moved", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    (acks_one, acks_all) = replicated(losing_first_broker, "contract.acks", [[1, 0], [2, 0]])
    connected = connection(losing_first_broker, request_timeout_s=5.0)
    with (
        reading(ConsumerSettings(connected), dict.fromkeys(moved, 0)) as reader,
        writing(ProducerSettings(connected), moved) as writer,
    ):
        with written_continuously(writer, moved) as appended:
            await_value(lambda: len(reader.keyed(moved[0])) > 100, WAIT_S, lambda: str(writer.failures))
            losing_first_broker.kill_broker(0)
            before = writer.acknowledged_records[moved[0]]
            await_value(
                lambda: writer.acknowledged_records[moved[0]] > before + 200,
                WAIT_S,
                lambda: str(writer.failures),
            )
        for partition in moved:
            writer.await_acknowledged(partition, appended[partition])
            reader.await_records(partition, numbered(appended[partition]))
            assert keyed_of(losing_first_broker, *partition) == numbered(appended[partition])
    assert not reader.out_of_range
    assert_acks_one_is_acknowledged(losing_first_broker, acks_one)
    assert_acks_all_waits(losing_first_broker, acks_all)


def replicated(cluster: LocalCluster, topic: str, assignment: list[list[int]]) -> Sequence[TopicPartition]:
    client = admin(cluster)  # a closed client would cancel the request
    new_topic = NewTopic(
        topic,
        num_partitions=len(assignment),
        replica_assignment=assignment,
        config={"min.insync.replicas": "2"},
    )
    client.create_topics([new_topic])[topic].result(WAIT_S)
    return [TopicPartition(topic, number) for number in range(len(assignment))]


def assert_acks_one_is_acknowledged(cluster: LocalCluster, partition: TopicPartition) -> None:
    with writing(ProducerSettings(connection(cluster), acks=1), [partition]) as writer:
        writer.append(partition, numbered(3))
        writer.await_acknowledged(partition, 3)


def assert_acks_all_waits(cluster: LocalCluster, partition: TopicPartition) -> None:
    with writing(ProducerSettings(connection(cluster), acks=-1), [partition]) as writer:
        writer.append(partition, numbered(3))
        await_value(
            lambda: NOT_ENOUGH_REPLICAS in {getattr(failure.error, "code", 0) for failure in writer.failures},
            WAIT_S,
            lambda: str(writer.failures),
        )
        assert not writer.acknowledgements
