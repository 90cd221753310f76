"""Errors of partitions without a leader."""

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.admin.metadata import Metadata
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.wire.error_codes import LEADER_NOT_AVAILABLE

PARTITION = TopicPartition("A.orders", 0)
LEADERLESS = Metadata(partitions={PARTITION.topic: 1})


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
