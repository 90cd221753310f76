"""The batch writer: acknowledgements, refused batches, sequences used by another producer."""

from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire import error_codes
from tests.contract.event_loop import WAIT_S, batch_of, writing
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import create_topic, keyed_of, numbered
from tests.support.broker_requests import asking, stored_batches
from tests.support.connections import connection
from tests.support.waiting import await_value


def test_acknowledgements_come_in_order_with_offsets(cluster: AnyCluster) -> None:
    partitions = [TopicPartition("contract.writer-offsets", number) for number in range(2)]
    create_topic(cluster.bootstrap_servers, partitions[0].topic, partitions=2)
    with writing(ProducerSettings(connection(cluster)), partitions) as writer:
        for partition in partitions:
            writer.append(partition, *(numbered(10, first) for first in range(0, 200, 10)))
        for partition in partitions:
            writer.await_acknowledged(partition, 200)
            offsets = [ack.base_offset for ack in writer.acknowledgements if ack.partition == partition]
            assert offsets == list(range(0, 200, 10))
            assert keyed_of(cluster, *partition) == numbered(200)


def test_batches_carry_one_producers_consecutive_sequences(cluster: AnyCluster) -> None:
    partition = TopicPartition("contract.writer-sequences", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    with writing(ProducerSettings(connection(cluster)), [partition]) as writer:
        writer.append(partition, numbered(3), numbered(1), numbered(2))
        writer.await_acknowledged(partition, 6)
    headers = [batch.header for batch in stored_batches(cluster, partition.topic)]
    assert [header.base_sequence for header in headers] == [0, 3, 4]
    assert len({(header.producer_id, header.producer_epoch) for header in headers}) == 1
    assert headers[0].producer_id >= 0


def test_sequence_used_by_another_producer_is_reported_and_can_restart(
    cluster: AnyCluster,
) -> None:
    """The broker has lost the producer's state, or another producer has used its id."""
    partition = TopicPartition("contract.writer-foreign", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    unwritten = [numbered(1, at) for at in (2, 3, 4)]
    with writing(ProducerSettings(connection(cluster)), [partition]) as writer:
        writer.append(partition, numbered(2))
        writer.await_acknowledged(partition, 2)
        (ours,) = stored_batches(cluster, partition.topic)
        foreign = batch_of(
            numbered(5, 100),
            producer_id=ours.header.producer_id,
            producer_epoch=ours.header.producer_epoch,
            base_sequence=2,
        )
        with asking(cluster) as asker:
            assert asker.produce_one(partition, foreign).error == 0
        writer.append(partition, *unwritten)
        await_value(lambda: len(writer.lost) > 0, WAIT_S, lambda: "nothing is reported")
        writer.begin(partition)
        writer.append(partition, *unwritten)
        writer.await_acknowledged(partition, 5)
        ((lost, error),) = writer.lost
        assert lost == partition
        assert getattr(error, "code", 0) == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert keyed_of(cluster, *partition) == [*numbered(2), *numbered(5, 100), *numbered(3, 2)]
    newest = stored_batches(cluster, partition.topic)[-1].header
    assert newest.producer_id != ours.header.producer_id
    assert newest.base_sequence == 2


def test_refused_batch_discards_the_queued_ones_and_leaves_no_gap(cluster: AnyCluster) -> None:
    refused, well = (TopicPartition(f"contract.writer-{name}", 0) for name in ("refused", "well"))
    create_topic(cluster.bootstrap_servers, refused.topic, config={"cleanup.policy": "compact"})
    create_topic(cluster.bootstrap_servers, well.topic)
    with writing(ProducerSettings(connection(cluster)), [refused, well]) as writer:
        for partition in (refused, well):
            writer.append(
                partition, numbered(2), [(None, b"no key")], *(numbered(1, at) for at in range(2, 9))
            )
        writer.await_acknowledged(well, 10)
        await_value(lambda: len(writer.refusals) > 0, WAIT_S, lambda: "no refusal")
        writer.append(refused, numbered(3, 2))
        writer.await_acknowledged(refused, 5)
        ((partition, error),) = writer.refusals
        assert partition == refused
        assert not error.retriable
        assert "Compacted topic cannot accept message without key" in str(error)
    assert keyed_of(cluster, *refused) == numbered(5)
