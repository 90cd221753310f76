"""Moves partitions to other brokers, by kafka-python's admin client: librdkafka's can't."""

from collections.abc import Sequence
from contextlib import closing

from kafka import KafkaAdminClient
from kafka import TopicPartition as TheirPartition

from sparkmirror.domain.ids import TopicPartition
from tests.support.any_cluster import AnyCluster


def reassign(cluster: AnyCluster, partition: TopicPartition, replicas: Sequence[int]) -> None:
    """Returns when the controller has the order; the brokers carry it out."""
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))) as client:
        client.alter_partition_reassignments({TheirPartition(*partition): list(replicas)})
