"""PartitionReader and SpanReader against a cluster in memory, in virtual time, under quotas."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import ThrottledError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import PartitionReader, SpanReader
from tests.memory.client_run import ClientRun, client_run
from tests.memory.cluster import MemoryCluster
from tests.support.batches import Rec, encode

TOPIC = "orders"
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
BATCHES = 50
VALUE = b"v" * 4000


class World:
    """Two partitions of `BATCHES` records each, a record in a batch."""

    def __init__(self, run: ClientRun) -> None:
        self.run = run
        self.source: MemoryCluster = run.cluster("source")
        self.source.create(TOPIC, 2)
        now_ms = int(time.time() * 1000)
        for partition in (FIRST, SECOND):
            for _ in range(BATCHES):
                data = encode([Rec(0, now_ms, b"key", VALUE)])
                self.source.log(partition).append(bytes(data), self.source.now_ms())
        self.settings = ConsumerSettings(run.connection(self.source))


@pytest.fixture
def world() -> Iterator[World]:
    with client_run() as run:
        yield World(run)


def test_every_partition_is_answered_however_long_the_quota_keeps_answers_back(world: World) -> None:
    world.source.quotas.set(consumer=10_000.0)
    read = {FIRST: 0, SECOND: 0}
    with closing(PartitionReader(world.settings, 50_000)) as reader:
        while sum(read.values()) < 2 * BATCHES:
            fetched = reader.fetch(read, 0.0)
            assert {each.partition for each in fetched} == {FIRST, SECOND}
            for each in fetched:
                for batch in iterate_batches(each.records):
                    read[each.partition] = batch.header.last_offset + 1
    assert world.run.time.time() > 30.0


@pytest.mark.parametrize("consumer", [2_000.0, None])
def test_a_span_is_read_whole_under_a_quota(world: World, consumer: float | None) -> None:
    world.source.quotas.set(consumer=consumer)
    with closing(SpanReader(world.settings)) as reader:
        offsets = [batch.header.base_offset for batch in reader.read(FIRST, 0, BATCHES)]
    assert offsets == list(range(BATCHES))


def test_a_quota_that_lets_nothing_through_is_an_error_in_the_end(world: World) -> None:
    world.source.quotas.set(consumer=300.0)
    began = world.run.time.time()
    with closing(PartitionReader(world.settings)) as reader, pytest.raises(ThrottledError, match="a quota"):
        reader.fetch({FIRST: 0}, 0.0)
    assert 100.0 < world.run.time.time() - began < 200.0
