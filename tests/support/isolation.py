"""Reads a partition with another client at an isolation level."""

from typing import Final

import confluent_kafka as confluent

from sparkmirror.domain.ids import TopicPartition
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import Keyed

WAIT_S: Final = 20.0


def seen_by(cluster: AnyCluster, partition: TopicPartition, isolation: str) -> list[Keyed]:
    """Read the records up to the end offset of the isolation level."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "contract.isolation",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
        "log_level": 0,
    }
    consumer = confluent.Consumer(settings)
    consumer.assign([confluent.TopicPartition(*partition, 0)])
    found: list[Keyed] = []
    try:
        while message := consumer.poll(WAIT_S):
            error = message.error()
            if error is not None:
                assert error.code() == confluent.KafkaError._PARTITION_EOF, error
                return found
            found.append((message.key(), message.value()))
    finally:
        consumer.close()
    raise AssertionError(f"{partition} has no end")


def committed(cluster: AnyCluster, topic: str, partition: int = 0) -> list[Keyed]:
    return seen_by(cluster, TopicPartition(topic, partition), "read_committed")
