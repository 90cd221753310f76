"""Moves the coordinators of groups to other brokers."""

from typing import Final

import confluent_kafka as confluent
from confluent_kafka import ElectionType

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.support.broker_data import admin
from tests.support.connections import connection
from tests.support.replica_moves import reassign
from tests.support.waiting import await_value

WAIT_S: Final = 60.0


def move_coordinator(cluster: LocalCluster, group_id: str) -> None:
    """Move the group's coordinator to another broker by a leader election; the replicas stay."""
    settings = connection(cluster)
    count = read_metadata(settings, ["__consumer_offsets"]).partitions["__consumer_offsets"]
    partition = TopicPartition("__consumer_offsets", java_hash(group_id) % count)
    leader = read_metadata(settings, [partition.topic]).leaders[partition].node_id
    others = [broker.node_id for broker in cluster.brokers if broker.node_id != leader]
    reassign(cluster, partition, [*others, leader])
    witness = admin(cluster)

    def moved() -> bool:
        asked = [confluent.TopicPartition(*partition)]
        witness.elect_leaders(ElectionType.PREFERRED, asked).result(WAIT_S)
        return read_metadata(settings, [partition.topic]).leaders[partition].node_id != leader

    await_value(moved, WAIT_S, lambda: f"{leader} leads {partition} still")


def java_hash(text: str) -> int:
    """Java's hash code of a string, as the absolute value by which Kafka chooses the partition."""
    number = 0
    for letter in text:
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    return min(number, (1 << 32) - number)
