"""What a leader says of an idempotent producer."""

import pytest

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.transactions.known_producers import last_written, unreplicated_records
from tests.contract.event_loop import writing
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import create_topic, numbered
from tests.support.broker_requests import stored_batches
from tests.support.connections import connection


def test_the_last_sequence_counts_the_records_of_the_id_and_epoch(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.producers", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    settings = connection(cluster)
    with writing(ProducerSettings(settings), [partition]) as writer:
        writer.append(partition, numbered(3), numbered(4))
        writer.await_acknowledged(partition, 7)
    header = stored_batches(cluster, partition.topic)[0].header
    producer = ProducerId(header.producer_id, header.producer_epoch)
    last = last_written(settings, partition, producer)
    assert last is not None
    assert (last.sequence, last.timestamp) == (
        6,
        stored_batches(cluster, partition.topic)[1].header.max_timestamp,
    )
    assert last_written(settings, partition, producer.next_epoch()) is None
    assert last_written(settings, partition, ProducerId(producer.id + 1, 0)) is None
    assert unreplicated_records(settings, partition, ProducerState(producer, 0, 0)) == 0


def test_a_partition_that_does_not_exist_has_an_error(cluster: AnyCluster) -> None:
    with pytest.raises(RetriableError, match=r"contract\.producers-missing-0"):
        last_written(connection(cluster), TopicPartition("contract.producers-missing", 0), ProducerId(1, 0))
