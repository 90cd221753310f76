"""Three brokers, one of which is killed: leaders move, and `acks` decides what a lonely leader takes."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka.admin import NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.looping import WAIT_S, reading, writing, written_for_ever
from tests.support.broker_data import admin, keyed_of, numbered
from tests.support.connections import connection
from tests.support.waiting import await_value

NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def bereft(trio: LocalCluster) -> Iterator[LocalCluster]:
    """Its first broker may be killed."""
    yield trio
    trio.start_broker(0)


def test_reader_and_writer_follow_leaders_and_in_sync_replicas(bereft: LocalCluster) -> None:
    moved = replicated(bereft, "contract.moved", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    (lonely, forsaken) = replicated(bereft, "contract.lonely", [[1, 0], [2, 0]])
    connected = connection(bereft, request_timeout_s=5.0)
    with (
        reading(ConsumerSettings(connected), dict.fromkeys(moved, 0)) as reader,
        writing(ProducerSettings(connected), moved) as writer,
    ):
        with written_for_ever(writer, moved) as appended:
            await_value(lambda: len(reader.keyed(moved[0])) > 100, WAIT_S, lambda: str(writer.failures))
            bereft.kill_broker(0)
            before = writer.acknowledged_records[moved[0]]
            await_value(
                lambda: writer.acknowledged_records[moved[0]] > before + 200,
                WAIT_S,
                lambda: str(writer.failures),
            )
        for partition in moved:
            writer.await_acknowledged(partition, appended[partition])
            reader.await_records(partition, numbered(appended[partition]))
            assert keyed_of(bereft, *partition) == numbered(appended[partition])
    assert not reader.out_of_range
    takes_one_acknowledgement(bereft, lonely)
    waits_for_all(bereft, forsaken)


def replicated(cluster: LocalCluster, topic: str, assignment: list[list[int]]) -> Sequence[TopicPartition]:
    client = admin(cluster)  # its end would end what it was asked
    new_topic = NewTopic(
        topic,
        num_partitions=len(assignment),
        replica_assignment=assignment,
        config={"min.insync.replicas": "2"},
    )
    client.create_topics([new_topic])[topic].result(WAIT_S)
    return [TopicPartition(topic, number) for number in range(len(assignment))]


def takes_one_acknowledgement(cluster: LocalCluster, partition: TopicPartition) -> None:
    with writing(ProducerSettings(connection(cluster), acks=1), [partition]) as writer:
        writer.append(partition, numbered(3))
        writer.await_acknowledged(partition, 3)


def waits_for_all(cluster: LocalCluster, partition: TopicPartition) -> None:
    with writing(ProducerSettings(connection(cluster), acks=-1), [partition]) as writer:
        writer.append(partition, numbered(3))
        await_value(
            lambda: NOT_ENOUGH_REPLICAS in {getattr(told.error, "code", 0) for told in writer.failures},
            WAIT_S,
            lambda: str(writer.failures),
        )
        assert not writer.acknowledgements
