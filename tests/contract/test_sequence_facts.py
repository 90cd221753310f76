"""Facts about brokers' checks of producer sequences (KIP-98, KIP-360), which never compare content."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER
from tests.contract.event_loop import batch_of
from tests.support.any_cluster import AnyCluster
from tests.support.batches import NOW_MS, Rec, encode
from tests.support.broker_data import create_topic, numbered
from tests.support.broker_requests import Asker, asking
from tests.support.topic_reader import await_leaders

PRODUCER: Final = 4711
TOPIC: Final = "contract.sequences"


class Appended(NamedTuple):
    error: int
    base_offset: int


OUT_OF_ORDER: Final = Appended(OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


class IdempotentProducer:
    """Sends batches of one producer id to one partition."""

    def __init__(self, asker: Asker, partition: int) -> None:
        self.asker = asker
        self.partition = TopicPartition(TOPIC, partition)

    def send(self, sequence: int, count: int = 2, *, epoch: int = 0) -> Appended:
        batch = batch_of(numbered(count), producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
        produced = self.asker.produce_one(self.partition, batch)
        return Appended(produced.error, produced.base_offset)

    def end(self) -> int:
        return self.asker.fetch_one(self.partition, 0).high_watermark


@pytest.fixture
def producer(cluster: AnyCluster, partitions: Iterator[int]) -> Iterator[IdempotentProducer]:
    with asking(cluster) as asker:
        yield IdempotentProducer(asker, next(partitions))


@pytest.fixture(scope="module")
def partitions(cluster: AnyCluster) -> Iterator[int]:
    create_topic(cluster.bootstrap_servers, TOPIC, partitions=10)
    return iter(range(10))


def test_repeat_of_the_last_five_batches_gets_the_first_response_again(producer: IdempotentProducer) -> None:
    assert [producer.send(at) for at in range(0, 12, 2)] == [Appended(0, at) for at in range(0, 12, 2)]
    assert [producer.send(at) for at in range(10, 1, -2)] == [Appended(0, at) for at in range(10, 1, -2)]
    assert producer.send(0) == OUT_OF_ORDER
    assert producer.end() == 12


@pytest.mark.parametrize(("sequence", "count"), [(1, 2), (0, 1), (0, 3), (3, 1)])
def test_batches_with_other_boundaries_or_gaps_are_out_of_order(
    producer: IdempotentProducer, sequence: int, count: int
) -> None:
    assert producer.send(0) == Appended(0, 0)
    assert producer.send(sequence, count) == OUT_OF_ORDER
    assert producer.end() == 2


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(producer: IdempotentProducer) -> None:
    assert producer.send(0) == Appended(0, 0)
    assert producer.send(2, epoch=1) == OUT_OF_ORDER
    assert producer.send(0, epoch=1) == Appended(0, 2)
    assert producer.send(2, epoch=0) == Appended(INVALID_PRODUCER_EPOCH, -1)


def test_producer_without_state_may_start_at_any_sequence(producer: IdempotentProducer) -> None:
    """Hence only one batch is in flight until the first acknowledgement: a refused one would leave a gap."""
    assert producer.send(77) == Appended(0, 0)


def test_a_producer_of_old_records_has_state_until_the_brokers_next_sweep(
    producer: IdempotentProducer,
) -> None:
    """Brokers look for expired producers every ten minutes."""
    old = encode([Rec(0, NOW_MS)], producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
    assert [producer.asker.produce_one(producer.partition, old).base_offset for _ in range(2)] == [0, 0]
    assert producer.send(7) == OUT_OF_ORDER


def test_sequences_wrap_inside_a_batch(producer: IdempotentProducer) -> None:
    assert producer.send(SEQUENCE_MODULUS - 1) == Appended(0, 0)
    assert producer.send(1) == Appended(0, 2)
    assert producer.send(SEQUENCE_MODULUS - 1) == Appended(0, 0)


def test_another_connection_continues_the_same_sequence(
    producer: IdempotentProducer, cluster: AnyCluster
) -> None:
    assert producer.send(0) == Appended(0, 0)
    with asking(cluster) as other:
        assert IdempotentProducer(other, producer.partition.partition).send(2) == Appended(0, 2)
    assert producer.send(4) == Appended(0, 4)


def test_restarted_broker_has_state_of_the_last_batch_only_and_none_of_old_records(
    frail_cluster: LocalCluster,
) -> None:
    """Producer state expires a day after its last record's timestamp, not after it was written."""
    create_topic(frail_cluster.bootstrap_servers, TOPIC, partitions=2)
    old = encode([Rec(0, NOW_MS)], producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
    backfilled = TopicPartition(TOPIC, 1)
    with asking(frail_cluster) as asker:
        assert [IdempotentProducer(asker, 0).send(at) for at in (0, 2, 4)] == [
            Appended(0, 0),
            Appended(0, 2),
            Appended(0, 4),
        ]
        assert [asker.produce_one(backfilled, old).base_offset for _ in range(2)] == [0, 0]
    frail_cluster.kill_broker(0)
    frail_cluster.start_broker(0)
    await_leaders(frail_cluster.bootstrap_servers, {TOPIC: 2})
    with asking(frail_cluster) as asker:
        assert [IdempotentProducer(asker, 0).send(at) for at in (4, 2, 0)] == [
            Appended(0, 4),
            OUT_OF_ORDER,
            OUT_OF_ORDER,
        ]
        assert asker.produce_one(backfilled, old).base_offset == 1
