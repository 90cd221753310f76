"""Epochs are claimed, and markers without data fence those before, on brokers in memory and real ones."""

import struct
from collections.abc import Iterator

import pytest

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.transactions.fencing import Claim, Fencing
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH, NONE
from tests.contract.event_loop import batch_of
from tests.support.any_cluster import AnyCluster
from tests.support.batches import decode
from tests.support.broker_data import create_topic, numbered
from tests.support.broker_requests import Asker, asking, stored_batches
from tests.support.connections import connection
from tests.support.isolation import seen_by
from tests.support.waiting import await_value

WAIT_S = 30.0
MANY = 250


@pytest.fixture
def fencing(cluster: AnyCluster) -> Iterator[Fencing]:
    made = Fencing(connection(cluster))
    yield made
    made.close()


def claimed(fencing: Fencing, *ids: str) -> list[ProducerId]:
    found = fencing.claim(ids)
    assert not [error for error in found.values() if isinstance(error, SparkmirrorError)]
    return [producer for each in ids if isinstance(producer := found[each], ProducerId)]


def produce(asker: Asker, partition: TopicPartition, producer: ProducerId, sequence: int) -> int:
    batch = batch_of(
        numbered(2, sequence),
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
    )
    return asker.produce_one(partition, batch).error


def marker_of(cluster: AnyCluster, partition: TopicPartition, producer: ProducerId) -> FetchedBatch:
    """Wait for the control batch that the broker writes for the producer."""

    def found() -> FetchedBatch | None:
        batches = stored_batches(cluster, *partition)
        return next((b for b in batches if producer.wrote(b.header) and b.header.attributes & CONTROL), None)

    return await_value(found, WAIT_S, lambda: "no marker")


def commits(marker: FetchedBatch) -> bool:
    """Whether it ends a transaction as committed: the type is the second of the key's two numbers."""
    (record,) = decode(marker.data)
    _version, kind = struct.unpack(">hh", record.key or b"")
    return bool(kind)


def test_each_claim_is_above_those_before(fencing: Fencing) -> None:
    before, others = claimed(fencing, "fencing.rising", "fencing.another")
    (after,) = claimed(fencing, "fencing.rising")
    assert after.id == before.id != others.id
    assert after.epoch > before.epoch


def test_a_marker_refuses_lower_epochs_and_shows_no_record(cluster: AnyCluster, fencing: Fencing) -> None:
    partition = TopicPartition("fencing.marker", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    (before,) = claimed(fencing, "fencing.marker")
    with asking(cluster) as asker:
        assert produce(asker, partition, before, 0) == NONE
        (after,) = claimed(fencing, "fencing.marker")
        assert fencing.mark({"fencing.marker": Claim(after, partition)}) == {"fencing.marker": None}
        assert not commits(marker_of(cluster, partition, after))
        assert produce(asker, partition, before, 2) == INVALID_PRODUCER_EPOCH
        assert produce(asker, partition, after, 0) == NONE
    for isolation in ("read_committed", "read_uncommitted"):
        assert seen_by(cluster, partition, isolation) == [*numbered(2), *numbered(2)]


def test_many_are_claimed_and_marked_at_once(cluster: AnyCluster, fencing: Fencing) -> None:
    topic = "fencing.many"
    create_topic(cluster.bootstrap_servers, topic, partitions=10)
    ids = [f"{topic}.{number}" for number in range(MANY)]
    producers = claimed(fencing, *ids)
    assert len({producer.id for producer in producers}) == MANY
    claims = {
        each: Claim(producer, TopicPartition(topic, number % 10))
        for number, (each, producer) in enumerate(zip(ids, producers, strict=True))
    }
    assert fencing.mark(claims) == dict.fromkeys(ids)


def test_an_epoch_that_another_has_claimed_since_marks_nothing(cluster: AnyCluster, fencing: Fencing) -> None:
    partition = TopicPartition("fencing.late", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    (before,) = claimed(fencing, "fencing.late")
    claimed(fencing, "fencing.late")
    (error,) = fencing.mark({"fencing.late": Claim(before, partition)}).values()
    assert "another producer has taken over" in str(error)
    assert not stored_batches(cluster, *partition)


def test_an_open_transaction_of_another_is_aborted_first(cluster: AnyCluster, fencing: Fencing) -> None:
    partition = TopicPartition("fencing.open", 0)
    create_topic(cluster.bootstrap_servers, partition.topic)
    (before,) = claimed(fencing, "fencing.open")
    assert fencing.mark({"fencing.open": Claim(before, partition)}) == {"fencing.open": None}
    (after,) = claimed(fencing, "fencing.open")  # while the marker may not be written yet
    assert after.epoch > before.epoch
