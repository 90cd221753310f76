"""BatchReader against a cluster in memory, in virtual time: one fault at a time."""

import time
from collections.abc import Iterator
from statistics import linear_regression

import pytest

from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.batch_reader import BatchReader
from sparkmirror.kafka.wire.fetch import API_KEY, FetchedPartition
from sparkmirror.kafka.wire.primitives import NO_EPOCH, NO_TOPIC_ID
from tests.memory.client_run import ClientRun, client_run
from tests.memory.fetch_sessions import FetchSessions
from tests.memory.intercepted_broker import note_requests
from tests.memory.network import Fate
from tests.support.batches import Rec, decode, encode

TOPIC = "orders"
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
AFTER_TIMEOUT_S = 60.0


class ReaderWorld:
    """A source topic, and a reader's listener that reads on."""

    def __init__(
        self, run: ClientRun, *, partitions: int = 2, brokers: int = 2, bytes_max: int = 1 << 20
    ) -> None:
        self.run = run
        self.source = run.cluster("source", brokers=brokers)
        self.topic = self.source.create(TOPIC, partitions)
        self.partitions = [TopicPartition(TOPIC, at) for at in range(partitions)]
        self.read: dict[TopicPartition, list[int]] = {partition: [] for partition in self.partitions}
        self.errors: list[SparkmirrorError] = []
        self.works: list[TopicPartition] = []
        self.failing: set[TopicPartition] = set()
        self.out_of_range: list[TopicPartition] = []
        self.diverged: list[tuple[TopicPartition, int, int]] = []
        self.recreated: list[TopicPartition] = []
        self.budget = 1 << 20
        self.value_bytes = 0
        self.read_bytes = 0
        settings = ConsumerSettings(run.connection(self.source), partition_fetch_bytes_max=bytes_max)
        self.reader = BatchReader(settings, run.loop, self)

    def start(self) -> None:
        self.run.call(lambda: self.reader.start(self.partitions, dict.fromkeys(self.partitions, 0)))

    def write(self, partition: TopicPartition, *batches: int) -> None:
        """Batches of so many records; a record's value is its offset."""
        log = self.source.log(partition)
        for count in batches:
            now_ms = int(time.time() * 1000)
            records = [
                Rec(at, now_ms, b"key", (b"%d" % (log.end + at)).rjust(self.value_bytes, b"0"))
                for at in range(count)
            ]
            log.append(bytes(encode(records)), self.source.now_ms())
        self.source.changed()

    def assert_reads(self, partition: TopicPartition, expected: list[int], within_s: float = 5.0) -> None:
        assert self.run.run_until(lambda: len(self.read[partition]) >= len(expected), within_s), self.errors
        assert self.read[partition] == expected

    # the reader's listener

    def fetched(self, partition: FetchedPartition) -> None:
        at = partition.partition
        self.failing.discard(at)
        for batch in iterate_batches(partition.records):
            self.read_bytes += len(batch.data)
            self.read[at] += [int(record.value or b"-1") for record in decode(batch.data)]
            self.reader.advance(at, batch.header.last_offset + 1)

    def response_taken(self) -> int:
        return self.budget

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self.failing.add(partition)
        self.errors.append(error)

    def fetch_works(self, partition: TopicPartition) -> None:
        self.works.append(partition)
        self.failing.discard(partition)

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        self.out_of_range.append(partition)

    def source_diverged(self, partition: TopicPartition, at: int, epoch: int) -> None:
        self.diverged.append((partition, at, epoch))

    def source_recreated(self, partition: TopicPartition) -> None:
        self.recreated.append(partition)

    def budget_bytes(self) -> int:
        return self.budget


@pytest.fixture
def world() -> Iterator[ReaderWorld]:
    with client_run() as run:
        world = ReaderWorld(run)
        yield world
        run.call(world.reader.stop)


def test_records_of_all_partitions_are_read_in_order(world: ReaderWorld) -> None:
    world.write(FIRST, 3, 1, 4)
    world.write(SECOND, 2)
    world.start()
    world.assert_reads(FIRST, list(range(8)))
    world.assert_reads(SECOND, [0, 1])
    world.write(FIRST, 2)
    world.assert_reads(FIRST, list(range(10)))
    assert not world.errors


def test_reading_continues_with_the_new_leader_after_a_leader_change(world: ReaderWorld) -> None:
    world.write(FIRST, 3)
    world.start()
    world.assert_reads(FIRST, [0, 1, 2])
    world.source.move_leader(FIRST)
    world.write(FIRST, 2)
    world.assert_reads(FIRST, list(range(5)))


def test_a_partition_without_leader_is_reported_and_read_once_it_has_one(world: ReaderWorld) -> None:
    world.write(FIRST, 3)
    world.source.log(FIRST).lead(None)
    world.start()
    assert world.run.run_until(lambda: bool(world.errors))
    assert str(FIRST) in str(world.errors[0])
    world.source.log(FIRST).lead(1)
    world.assert_reads(FIRST, [0, 1, 2])


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
def test_a_failed_fetch_is_repeated_without_losing_or_repeating_records(
    world: ReaderWorld, fate: Fate
) -> None:
    world.start()
    world.write(FIRST, 2)
    world.assert_reads(FIRST, [0, 1])
    world.run.faults.inject(API_KEY, fate)
    assert world.run.run_until(lambda: world.run.faults.is_used)
    world.write(FIRST, 3)
    world.write(SECOND, 3)
    world.assert_reads(FIRST, list(range(5)), AFTER_TIMEOUT_S)
    world.assert_reads(SECOND, list(range(3)), AFTER_TIMEOUT_S)
    assert world.run.run_until(lambda: bool(world.errors), AFTER_TIMEOUT_S)


def test_a_lost_fetch_session_is_replaced_without_reporting_an_error(world: ReaderWorld) -> None:
    world.start()
    world.write(FIRST, 2)
    world.assert_reads(FIRST, [0, 1])
    for broker in world.source.brokers:
        broker.sessions = FetchSessions()
    world.write(FIRST, 3)
    world.assert_reads(FIRST, list(range(5)))
    assert not world.errors


def test_an_offset_out_of_range_is_reported_once_and_paused_until_advance(world: ReaderWorld) -> None:
    world.write(FIRST, 2, 2)
    world.source.log(FIRST).delete_before(2)
    world.start()
    world.run.run_for(5.0)
    assert world.out_of_range == [FIRST]
    assert world.read[FIRST] == []
    world.run.call(lambda: world.reader.advance(FIRST, 2))
    world.run.call(world.reader.fetch_more)
    world.assert_reads(FIRST, [2, 3])
    assert world.out_of_range == [FIRST]


def test_a_truncated_source_is_reported_with_the_offset_where_it_diverged(world: ReaderWorld) -> None:
    world.write(FIRST, 2, 3)
    world.start()
    world.assert_reads(FIRST, list(range(5)))
    world.source.log(FIRST).truncate(2, world.source.now_ms())
    world.write(FIRST, 1, 1, 1, 1)
    assert world.run.run_until(lambda: bool(world.diverged))
    world.run.run_for(3.0)
    assert world.diverged == [(FIRST, 2, 0)]
    assert world.read[FIRST] == list(range(5))
    world.run.call(lambda: world.reader.begin(FIRST, 2, NO_TOPIC_ID, NO_EPOCH))
    world.run.call(world.reader.fetch_more)
    world.assert_reads(FIRST, [*range(5), 2, 3, 4, 5])


def test_a_recreated_topic_is_reported_and_paused_until_begin(world: ReaderWorld) -> None:
    old_id = world.topic.id.bytes
    world.write(FIRST, 2)
    world.start()
    world.run.call(lambda: world.reader.begin(FIRST, 0, old_id, NO_EPOCH))
    world.assert_reads(FIRST, [0, 1])
    world.source.delete(TOPIC)
    new = world.source.create(TOPIC, 2)
    world.write(FIRST, 3)
    assert world.run.run_until(lambda: bool(world.recreated), AFTER_TIMEOUT_S)
    world.run.run_for(2.0)
    assert world.read[FIRST] == [0, 1]
    world.run.call(lambda: world.reader.begin(FIRST, 0, new.id.bytes, NO_EPOCH))
    world.run.call(world.reader.fetch_more)
    world.assert_reads(FIRST, [0, 1, 0, 1, 2])


def test_a_paused_partition_is_not_fetched_and_the_other_continues(world: ReaderWorld) -> None:
    world.start()
    world.write(FIRST, 1)
    world.assert_reads(FIRST, [0])
    world.run.call(lambda: world.reader.pause(FIRST))
    world.run.run_for(1.0)
    world.write(FIRST, 2)
    world.write(SECOND, 2)
    world.assert_reads(SECOND, [0, 1])
    world.run.run_for(2.0)
    assert world.read[FIRST] == [0]
    world.run.call(lambda: world.reader.advance(FIRST, 1))
    world.run.call(world.reader.fetch_more)
    world.assert_reads(FIRST, [0, 1, 2])


def test_no_fetch_is_sent_without_a_budget(world: ReaderWorld) -> None:
    world.budget = 0
    world.write(FIRST, 3)
    world.start()
    world.run.run_for(3.0)
    assert world.run.faults.requests[API_KEY] == 0
    world.budget = 1 << 20
    world.run.call(world.reader.fetch_more)
    world.assert_reads(FIRST, [0, 1, 2])


def test_a_reader_keeps_to_a_quota_and_takes_no_error() -> None:
    """Responses are empty while they would exceed the quota, the first of a session too (KIP-219)."""
    with client_run() as run:
        world = ReaderWorld(run, brokers=1)
        world.source.quotas.set(consumer=12_000.0)
        world.value_bytes = 4_000
        world.write(FIRST, *[1] * 60)
        world.write(SECOND, *[1] * 60)
        world.start()
        began = run.time.time()
        world.assert_reads(FIRST, list(range(60)), 60.0)
        world.assert_reads(SECOND, list(range(60)), 60.0)
        elapsed_s = run.time.time() - began
        assert world.source.quotas.consumer.bytes / elapsed_s >= 0.95 * 12_000.0
        assert world.reader.traffic.throttled_s > elapsed_s / 2
        assert not world.errors
        run.call(world.reader.stop)


@pytest.mark.parametrize("batches", [[1], [3], [1, 4, 2, 3], [8]])
def test_what_a_quota_lets_through_is_whole_batches(batches: list[int]) -> None:
    """A broker counts the part that it sends of a batch too, and the reader can't use it."""
    rate, warm_s, measured_s = 200_000.0, 33, 88
    with client_run() as run:
        world = ReaderWorld(run, brokers=1)
        world.source.quotas.set(consumer=rate)
        world.value_bytes = 4_000
        count = int(rate * (warm_s + measured_s + 20)) // (2 * world.value_bytes * sum(batches)) + 1
        world.write(FIRST, *batches * count)
        world.write(SECOND, *batches * count)
        world.start()
        run.run_for(warm_s)
        read = []
        for _ in range(measured_s):
            run.run_for(1.0)
            read.append(world.read_bytes)
        assert linear_regression(range(measured_s), read).slope >= 0.95 * rate
        assert not world.errors
        run.call(world.reader.stop)


def test_a_reader_whose_quota_lets_nothing_through_says_so_until_it_does(world: ReaderWorld) -> None:
    world.source.quotas.set(consumer=10.0)
    world.write(FIRST, 100)
    world.start()
    world.run.run_for(100.0)
    assert not world.errors
    assert world.run.run_until(lambda: bool(world.errors), AFTER_TIMEOUT_S)
    assert "source-0:9092,source-1:9092 throttles: a quota" in str(world.errors[0])
    assert world.errors[0].retriable
    world.source.quotas.set()
    world.assert_reads(FIRST, list(range(100)), AFTER_TIMEOUT_S)
    assert world.run.run_until(lambda: not world.failing)


def test_no_request_times_out_behind_a_muted_connection(world: ReaderWorld) -> None:
    world.start()
    world.write(FIRST, 1)
    world.assert_reads(FIRST, [0])
    world.source.quotas.requests_s = 100.0
    world.write(FIRST, 1)
    world.run.run_for(1.0)
    world.source.quotas.requests_s = 0.0
    world.run.run_for(95.0)
    assert world.read[FIRST] == [0]
    world.assert_reads(FIRST, [0, 1], 10.0)
    assert not world.errors


@pytest.mark.parametrize("fault", ["lost", "moved", "restarted"])
def test_an_error_of_a_quiet_partition_ends_although_no_record_comes(world: ReaderWorld, fault: str) -> None:
    """A session reports an error once, and nothing when it is over (KIP-227)."""
    world.start()
    world.run.run_for(1.0)
    broker = world.source.broker(world.source.log(FIRST).leader or 0)
    if fault == "lost":
        world.run.network.disconnect()
    elif fault == "moved":
        world.source.log(FIRST).lead(world.source.log(FIRST).leader)
        world.source.changed()
    else:
        world.source.stop(broker)
        world.run.network.disconnect(broker)
        world.run.run_for(3.0)
        world.source.restart(broker)
        world.source.log(FIRST).lead(broker.node_id)
        world.source.changed()
    assert world.run.run_until(lambda: FIRST in world.failing, AFTER_TIMEOUT_S)
    assert world.run.run_until(lambda: not world.failing, AFTER_TIMEOUT_S), world.failing
    world.write(FIRST, 1)
    world.assert_reads(FIRST, [0])


def test_a_busy_partition_among_many_quiet_ones_is_fetched_alone_and_they_are_read_too() -> None:
    with client_run() as run:
        world = ReaderWorld(run, partitions=150, brokers=1, bytes_max=2000)
        (broker,) = world.source.brokers
        fetches = note_requests(run.network, broker, API_KEY)
        busy, quiet = world.partitions[3], world.partitions[77]
        world.write(busy, *[10] * 300)
        world.start()
        world.assert_reads(busy, list(range(3000)), AFTER_TIMEOUT_S)
        world.write(quiet, 10)
        world.assert_reads(quiet, list(range(10)))
        world.write(busy, 10)
        world.assert_reads(busy, list(range(3010)))
        alone = [fetch.topics for fetch in fetches if fetch.session_epoch < 0]
        assert [3] in [[at.partition for topic in topics for at in topic.partitions] for topics in alone]
        run.call(world.reader.stop)
