"""A partition whose follower does not respond delays no other partition of its leader."""

import time
from typing import Final

from confluent_kafka.admin import NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.conftest import TRIO_SESSION_S
from tests.contract.event_loop import writing
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
