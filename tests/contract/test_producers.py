"""A leader describes the state of an idempotent producer."""

from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.transactions.known_producers import KnownProducer, known_producers
from tests.contract.event_loop import writing
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import create_topic, numbered
from tests.support.broker_requests import stored_batches
from tests.support.connections import connection


def test_the_last_sequence_counts_the_records_of_the_id(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.producers", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    settings = connection(cluster)
    with writing(ProducerSettings(settings), [partition]) as writer:
        writer.append(partition, numbered(3), numbered(4))
        writer.await_acknowledged(partition, 7)
    header = stored_batches(cluster, partition.topic)[0].header
    known = known_producers(settings, {partition: header.producer_id})
    assert known == {partition: KnownProducer(header.producer_epoch, 6)}
    assert known_producers(settings, {partition: header.producer_id + 1}) == {partition: None}


def test_a_partition_that_does_not_exist_has_an_error(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.producers-missing", 0)
    found = known_producers(connection(cluster), {partition: 1})[partition]
    assert isinstance(found, RetriableError)
    assert "contract.producers-missing-0" in str(found)
