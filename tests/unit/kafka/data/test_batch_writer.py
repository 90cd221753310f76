"""BatchWriter against a cluster in memory, in virtual time: one fault at a time."""

import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

import pytest

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_writer import BatchWriter
from sparkmirror.kafka.wire.error_codes import (
    INVALID_PRODUCER_EPOCH,
    LEADER_NOT_AVAILABLE,
    MESSAGE_TOO_LARGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
)
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID
from sparkmirror.kafka.wire.produce import API_KEY
from tests.memory.client_run import ClientRun, client_run
from tests.memory.intercepted_broker import note_requests
from tests.memory.network import Fate
from tests.memory.producer_states import ProducerStates
from tests.support.batches import Rec, decode, encode

TOPIC = "orders"
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
PRODUCER = ProducerId(4711, 3)
AFTER_TIMEOUT_S = 60.0


class Acknowledged(NamedTuple):
    base_offset: int
    records: int
    completes: bool


def batch(first: int, count: int, value_bytes: int = 0) -> OutgoingBatch:
    """Records whose values are their upstream offsets."""
    now_ms = int(time.time() * 1000)
    values = [(b"%d" % (first + at)).rjust(value_bytes, b"0") for at in range(count)]
    data = encode([Rec(at, now_ms, b"key", value) for at, value in enumerate(values)])
    return OutgoingBatch(memoryview(data), range(first, first + count), now_ms)


class WriterWorld:
    """A target topic of two partitions on two brokers, and a writer's listener."""

    def __init__(self, run: ClientRun, *, in_flight_max: int = 5) -> None:
        self.run = run
        self.target = run.cluster("target", brokers=2)
        leader = self.target.brokers[0]
        self.produced_to_first = note_requests(run.network, leader, API_KEY)
        self.topic = self.target.create(TOPIC, 2)
        self.acknowledged_batches: dict[TopicPartition, list[Acknowledged]] = {FIRST: [], SECOND: []}
        self.errors: list[SparkmirrorError] = []
        self.refused: list[tuple[int, list[int]]] = []
        self.lost: list[tuple[TopicPartition, int]] = []
        self.recreated: list[TopicPartition] = []
        self.new_leaders: list[TopicPartition] = []
        settings = ProducerSettings(run.connection(self.target), in_flight_max=in_flight_max)
        self.writer = BatchWriter(settings, run.loop, self)
        run.call(lambda: self.writer.start([FIRST, SECOND]))

    def begin(self, partition: TopicPartition, state: ProducerState, topic_id: bytes = NO_TOPIC_ID) -> None:
        self.run.call(lambda: self.writer.begin(partition, state, topic_id))

    def append(self, partition: TopicPartition, *batches: OutgoingBatch) -> None:
        def append() -> None:
            for outgoing in batches:
                self.writer.append(partition, outgoing)
            self.writer.flush()

        self.run.call(append)

    def written(self, partition: TopicPartition) -> list[int]:
        found = self.target.log(partition).batches
        return [int(record.value or b"-1") for stored in found for record in decode(stored.data)]

    def assert_acknowledges(self, partition: TopicPartition, records: int, within_s: float = 5.0) -> None:
        """Exactly so many records, each in the log once and in order."""

        def count() -> int:
            return sum(acknowledged.records for acknowledged in self.acknowledged_batches[partition])

        assert self.run.run_until(lambda: count() >= records, within_s), self.errors
        assert count() == records
        assert self.written(partition) == list(range(records))

    # the writer's listener

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        self.acknowledged_batches[partition].append(Acknowledged(base_offset, len(batch.offsets), completes))

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        del partition
        self.errors.append(error)

    def write_possible(self, partition: TopicPartition) -> None: ...

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        del partition
        self.refused.append((error.code or 0, list(batch.offsets)))

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self.lost.append((partition, error.code or 0))

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None:
        self.new_leaders += partitions

    def target_recreated(self, partition: TopicPartition) -> None:
        self.recreated.append(partition)


@pytest.fixture
def world() -> Iterator[WriterWorld]:
    with client_run() as run:
        world = WriterWorld(run)
        for partition in (FIRST, SECOND):
            world.begin(partition, ProducerState(PRODUCER, 0, 0))
        yield world
        run.call(world.writer.stop)


def test_batches_of_all_partitions_are_acknowledged_in_order(world: WriterWorld) -> None:
    world.append(FIRST, batch(0, 3), batch(3, 1), batch(4, 4))
    world.append(SECOND, batch(0, 2))
    world.assert_acknowledges(FIRST, 8)
    world.assert_acknowledges(SECOND, 2)
    assert world.acknowledged_batches[FIRST] == [(0, 3, True), (3, 1, True), (4, 4, True)]
    assert not world.errors


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
def test_a_failed_produce_is_repeated_and_each_record_written_once(world: WriterWorld, fate: Fate) -> None:
    world.append(FIRST, batch(0, 1))
    world.assert_acknowledges(FIRST, 1)
    world.run.faults.inject(API_KEY, fate)
    world.append(FIRST, *(batch(at, 1) for at in range(1, 9)))
    world.assert_acknowledges(FIRST, 9, AFTER_TIMEOUT_S)
    assert world.run.faults.is_used
    assert world.errors


def test_the_log_is_checked_before_a_batch_is_repeated_that_the_broker_forgot(world: WriterWorld) -> None:
    """The broker, which lacks the producer's state, would append the batch again."""
    world.append(FIRST, batch(0, 1))
    world.assert_acknowledges(FIRST, 1)
    log = world.target.log(FIRST)
    world.run.faults.inject(API_KEY, Fate.SILENCE)
    world.append(FIRST, batch(1, 3))
    assert world.run.run_until(lambda: log.end == 4)
    log.producers = ProducerStates()
    world.assert_acknowledges(FIRST, 4, AFTER_TIMEOUT_S)
    assert world.acknowledged_batches[FIRST] == [(0, 1, True), (1, 3, True)]
    world.append(FIRST, batch(4, 1))
    world.assert_acknowledges(FIRST, 5)


def test_a_batch_that_followers_lack_is_acknowledged_when_they_have_it(world: WriterWorld) -> None:
    log = world.target.log(FIRST)
    log.hold()
    world.append(FIRST, batch(0, 3))
    world.append(SECOND, batch(0, 2))
    world.assert_acknowledges(SECOND, 2)
    world.run.run_for(20.0)
    assert not world.acknowledged_batches[FIRST]
    log.release()
    world.target.changed()
    world.assert_acknowledges(FIRST, 3, AFTER_TIMEOUT_S)


def test_a_partition_whose_followers_respond_again_returns_to_the_connection_of_the_others() -> None:
    """Also when nothing more comes that would make the writer send."""
    with client_run() as run:
        world = WriterWorld(run, in_flight_max=1)
        world.begin(FIRST, ProducerState(PRODUCER, 0, 0))
        log = world.target.log(FIRST)
        log.hold()
        world.append(FIRST, batch(0, 2))
        run.run_for(5.0)
        log.release()
        world.target.changed()
        world.assert_acknowledges(FIRST, 2, AFTER_TIMEOUT_S)
        world.append(FIRST, *(batch(at, 2) for at in range(2, 20, 2)))
        world.assert_acknowledges(FIRST, 20)
        waits_ms = [request.timeout_ms for request in world.produced_to_first]
        assert waits_ms[0] < max(waits_ms), "it had a connection of its own"
        assert waits_ms[-1] == waits_ms[0]
        run.call(world.writer.stop)


def test_writing_continues_with_the_new_leader_after_a_leader_change(world: WriterWorld) -> None:
    world.append(FIRST, batch(0, 3))
    world.assert_acknowledges(FIRST, 3)
    world.target.move_leader(FIRST)
    world.append(FIRST, batch(3, 2), batch(5, 1))
    world.assert_acknowledges(FIRST, 6)


def test_nothing_is_sent_to_the_last_leader_while_there_is_none(world: WriterWorld) -> None:
    world.append(FIRST, batch(0, 1))
    world.assert_acknowledges(FIRST, 1)
    log = world.target.log(FIRST)
    log.leader = None
    world.append(FIRST, batch(1, 1))
    assert world.run.run_until(lambda: LEADER_NOT_AVAILABLE in [error.code for error in world.errors])
    requests = len(world.produced_to_first)
    world.append(FIRST, batch(2, 1))
    world.run.run_for(5.0)
    assert len(world.produced_to_first) == requests
    log.leader = world.target.brokers[1].node_id
    world.assert_acknowledges(FIRST, 3)


def test_a_batch_that_is_too_large_is_split_and_acknowledged_in_parts(world: WriterWorld) -> None:
    world.topic.config["max.message.bytes"] = "500"
    world.append(FIRST, batch(0, 4, value_bytes=150))
    world.assert_acknowledges(FIRST, 4)
    assert world.acknowledged_batches[FIRST] == [(0, 2, False), (2, 2, True)]


def test_a_record_that_is_too_large_is_refused_and_what_follows_is_discarded(world: WriterWorld) -> None:
    world.topic.config["max.message.bytes"] = "500"
    world.append(FIRST, batch(0, 1), batch(1, 1, value_bytes=600), batch(2, 1))
    world.append(SECOND, batch(0, 2))
    assert world.run.run_until(lambda: bool(world.refused))
    world.run.run_for(5.0)
    assert world.refused == [(MESSAGE_TOO_LARGE, [1])]
    world.assert_acknowledges(FIRST, 1)
    world.assert_acknowledges(SECOND, 2)
    world.append(FIRST, batch(1, 1))  # the sequence of the refused batch is free
    world.assert_acknowledges(FIRST, 2)


def test_a_sequence_unknown_to_the_broker_is_reported_and_nothing_sent_until_begin(
    world: WriterWorld,
) -> None:
    world.append(FIRST, batch(0, 3))
    world.assert_acknowledges(FIRST, 3)
    world.begin(FIRST, ProducerState(PRODUCER, 7, 3))
    world.append(FIRST, batch(3, 1))
    assert world.run.run_until(lambda: bool(world.lost))
    world.run.run_for(5.0)
    assert world.lost == [(FIRST, OUT_OF_ORDER_SEQUENCE_NUMBER)]
    assert world.written(FIRST) == [0, 1, 2]
    world.begin(FIRST, ProducerState(PRODUCER, 3, 3))
    world.append(FIRST, batch(3, 2))
    world.assert_acknowledges(FIRST, 5)


def test_a_writer_fenced_by_a_newer_epoch_reports_its_sequence_as_lost(world: WriterWorld) -> None:
    world.append(FIRST, batch(0, 3))
    world.assert_acknowledges(FIRST, 3)
    newer = encode(
        [Rec(0, int(time.time() * 1000), b"key", b"3")],
        producer_id=PRODUCER.id,
        producer_epoch=PRODUCER.epoch + 1,
        base_sequence=0,
    )
    assert world.target.log(FIRST).append(bytes(newer), world.target.now_ms()).error == 0
    world.append(FIRST, batch(4, 1))
    world.append(SECOND, batch(0, 1))
    assert world.run.run_until(lambda: bool(world.lost))
    assert world.lost == [(FIRST, INVALID_PRODUCER_EPOCH)]
    assert world.written(FIRST) == [0, 1, 2, 3]
    world.assert_acknowledges(SECOND, 1)


def test_a_recreated_topic_is_reported_and_nothing_sent_until_begin(world: WriterWorld) -> None:
    world.begin(FIRST, ProducerState(PRODUCER, 0, 0), world.topic.id.bytes)
    world.append(FIRST, batch(0, 2))
    world.assert_acknowledges(FIRST, 2)
    world.target.delete(TOPIC)
    new = world.target.create(TOPIC, 2)
    world.append(FIRST, batch(2, 1))
    assert world.run.run_until(lambda: FIRST in world.recreated, AFTER_TIMEOUT_S)
    world.run.run_for(5.0)
    assert world.written(FIRST) == []
    world.acknowledged_batches[FIRST].clear()
    world.begin(FIRST, ProducerState(PRODUCER.next_epoch(), 0, 0), new.id.bytes)
    world.append(FIRST, batch(0, 2))
    world.assert_acknowledges(FIRST, 2)


def test_a_throttled_writer_waits_before_its_next_produce(world: WriterWorld) -> None:
    world.append(FIRST, batch(0, 1))
    world.assert_acknowledges(FIRST, 1)
    world.target.quotas.requests_s = 10.0
    world.append(FIRST, batch(1, 1))
    world.assert_acknowledges(FIRST, 2)
    world.target.quotas.requests_s = 0.0
    world.append(FIRST, batch(2, 1))
    world.run.run_for(9.0)
    assert world.written(FIRST) == [0, 1]
    world.assert_acknowledges(FIRST, 3)
    assert not world.errors


def test_no_request_behind_a_throttled_one_times_out(world: WriterWorld) -> None:
    """Several are in flight when the first response has a throttle time longer than the time-out."""
    world.append(FIRST, batch(0, 1))
    world.assert_acknowledges(FIRST, 1)
    world.target.quotas.requests_s = 40.0
    for at in range(1, 6):
        world.append(FIRST, batch(at, 1))
    world.run.run_for(150.0)
    world.assert_acknowledges(FIRST, 6, 50.0)
    assert world.run.faults.requests[API_KEY] == 6
    assert not world.errors


def test_a_writer_keeps_to_a_quota(world: WriterWorld) -> None:
    world.target.quotas.set(producer=400.0)
    began = world.run.time.time()
    for at in range(100):
        world.append(FIRST, batch(at, 1))
    world.assert_acknowledges(FIRST, 100, 600.0)
    elapsed_s = world.run.time.time() - began
    assert world.target.quotas.producer.bytes / elapsed_s >= 0.95 * 400.0
    assert not world.errors
