"""A partition whose follower does not respond delays no other partition of its leader."""

import time
from typing import Final

from confluent_kafka.admin import NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.conftest import TRIO_SESSION_S
from tests.contract.event_loop import on_loop, writing
from tests.support.broker_data import admin, keyed_of, numbered
from tests.support.connections import connection
from tests.support.freezing import frozen

WAIT_S: Final = 30.0
FOLLOWER: Final = 2
WELL: Final = TopicPartition("contract.well", 0)
SLOW: Final = TopicPartition("contract.slow", 0)
PARTITIONS: Final = (WELL, SLOW)


def create(cluster: LocalCluster, partition: TopicPartition, replicas: list[int]) -> None:
    client = admin(cluster)  # a closed client would cancel the request
    topic = NewTopic(partition.topic, num_partitions=1, replica_assignment=[replicas])
    client.create_topics([topic])[partition.topic].result(WAIT_S)


def test_other_partitions_do_not_wait_for_a_frozen_follower(trio: LocalCluster) -> None:
    in_each = 10
    create(trio, WELL, [0])
    create(trio, SLOW, [0, FOLLOWER])
    with writing(ProducerSettings(connection(trio)), PARTITIONS) as writer:
        for partition in PARTITIONS:
            writer.append(partition, numbered(in_each))
            writer.await_acknowledged(partition, in_each)
        sent = in_each
        with frozen(trio.pids[FOLLOWER]):  # leaders wait for it until its session expires
            began = time.monotonic()
            while time.monotonic() - began < TRIO_SESSION_S / 2:
                for partition in PARTITIONS:
                    writer.append(partition, numbered(in_each, sent))
                sent += in_each
                writer.await_acknowledged(WELL, sent)
            assert time.monotonic() - began < TRIO_SESSION_S, "it waited for the slow one as well"
            assert writer.acknowledged_records[SLOW] == in_each
        writer.await_acknowledged(SLOW, sent)
    for partition in PARTITIONS:
        assert keyed_of(trio, *partition) == numbered(sent)


def test_recovered_partition_continues_with_the_others(target_cluster: LocalCluster) -> None:
    """Also when no further batch is appended."""
    partition = TopicPartition("contract.well-again", 0)
    create(target_cluster, partition, [0])
    one_at_a_time = ProducerSettings(connection(target_cluster), in_flight_max=1)
    with writing(one_at_a_time, [partition]) as writer:
        writer.append(partition, numbered(2))
        writer.await_acknowledged(partition, 2)
        queue = writer.writer._queues[partition]
        queue.is_slow = True
        on_loop(writer.writer._loop, lambda: writer.writer._route(queue))
        writer.append(partition, *(numbered(2, at) for at in range(2, 20, 2)))
        writer.await_acknowledged(partition, 20)
        assert not queue.is_slow
