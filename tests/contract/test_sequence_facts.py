"""How a broker judges idempotent sequences (KIP-98, KIP-360): it compares numbers, never content."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.error_codes import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER
from tests.contract.looping import batch_of
from tests.support.any_cluster import AnyCluster
from tests.support.batches import NOW_MS, Rec, encode
from tests.support.broker_data import create_topic, numbered
from tests.support.broker_requests import Asker, asking
from tests.support.topic_reader import await_leaders

PRODUCER: Final = 4711
TOPIC: Final = "contract.sequences"


class Told(NamedTuple):
    error: int
    base_offset: int


OUT_OF_ORDER: Final = Told(OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


class Line:
    """One producer's batches on one partition."""

    def __init__(self, asker: Asker, partition: int) -> None:
        self.asker = asker
        self.partition = TopicPartition(TOPIC, partition)

    def send(self, sequence: int, count: int = 2, *, epoch: int = 0) -> Told:
        batch = batch_of(numbered(count), producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
        told = self.asker.produce_one(self.partition, batch)
        return Told(told.error, told.base_offset)

    def end(self) -> int:
        return self.asker.fetch_one(self.partition, 0).high_watermark


@pytest.fixture
def line(cluster: AnyCluster, lines: Iterator[int]) -> Iterator[Line]:
    with asking(cluster) as asker:
        yield Line(asker, next(lines))


@pytest.fixture(scope="module")
def lines(cluster: AnyCluster) -> Iterator[int]:
    create_topic(cluster.bootstrap_servers, TOPIC, partitions=9)
    return iter(range(9))


def test_repeat_of_the_last_five_batches_gets_the_first_response_again(line: Line) -> None:
    assert [line.send(at) for at in range(0, 12, 2)] == [Told(0, at) for at in range(0, 12, 2)]
    assert [line.send(at) for at in range(10, 1, -2)] == [Told(0, at) for at in range(10, 1, -2)]
    assert line.send(0) == OUT_OF_ORDER
    assert line.end() == 12


@pytest.mark.parametrize(("sequence", "count"), [(1, 2), (0, 1), (0, 3), (3, 1)])
def test_other_boundaries_and_gaps_are_out_of_order(line: Line, sequence: int, count: int) -> None:
    assert line.send(0) == Told(0, 0)
    assert line.send(sequence, count) == OUT_OF_ORDER
    assert line.end() == 2


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(line: Line) -> None:
    assert line.send(0) == Told(0, 0)
    assert line.send(2, epoch=1) == OUT_OF_ORDER
    assert line.send(0, epoch=1) == Told(0, 2)
    assert line.send(2, epoch=0) == Told(INVALID_PRODUCER_EPOCH, -1)


def test_producer_without_state_may_start_at_any_sequence(line: Line) -> None:
    """Hence one batch in flight until the first is acknowledged: a refused one would leave a silent hole."""
    assert line.send(77) == Told(0, 0)


def test_sequences_wrap_inside_a_batch(line: Line) -> None:
    assert line.send(SEQUENCE_MODULUS - 1) == Told(0, 0)
    assert line.send(1) == Told(0, 2)
    assert line.send(SEQUENCE_MODULUS - 1) == Told(0, 0)


def test_another_connection_continues_the_same_sequence(line: Line, cluster: AnyCluster) -> None:
    assert line.send(0) == Told(0, 0)
    with asking(cluster) as other:
        assert Line(other, line.partition.partition).send(2) == Told(0, 2)
    assert line.send(4) == Told(0, 4)


def test_a_restarted_broker_knows_the_last_batch_only_and_old_records_not_at_all(
    frail_cluster: LocalCluster,
) -> None:
    """A producer's state expires by its last record's timestamp, not by the time of writing (a day)."""
    create_topic(frail_cluster.bootstrap_servers, TOPIC, partitions=2)
    old = encode([Rec(0, NOW_MS)], producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
    backfilled = TopicPartition(TOPIC, 1)
    with asking(frail_cluster) as asker:
        assert [Line(asker, 0).send(at) for at in (0, 2, 4)] == [Told(0, 0), Told(0, 2), Told(0, 4)]
        assert [asker.produce_one(backfilled, old).base_offset for _ in range(2)] == [0, 0]
    frail_cluster.kill_broker(0)
    frail_cluster.start_broker(0)
    await_leaders(frail_cluster.bootstrap_servers, {TOPIC: 2})
    with asking(frail_cluster) as asker:
        assert [Line(asker, 0).send(at) for at in (4, 2, 0)] == [Told(0, 4), OUT_OF_ORDER, OUT_OF_ORDER]
        assert asker.produce_one(backfilled, old).base_offset == 1
