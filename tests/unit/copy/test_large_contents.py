"""Batches that hold much more than they have bytes: one that must be opened fails alone."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import DEFAULT_REACTIONS, IncidentKind, OnBadBatch
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.partition_queue import PartitionQueue
from sparkmirror.settings.source import CopySettings
from tests.memory.committed import decoded
from tests.memory.ledger import Due
from tests.memory.stage import REMOTE, TOPIC, RunningTask, Shape, Stage
from tests.support.batches import Rec, encode

MB: Final = 1 << 20
ZSTD: Final = 4
OPTION: Final = "batch.decompressed.bytes.max"
WAIT_S: Final = 10.0
SKIP: Final = DEFAULT_REACTIONS._replace(on_bad_batch=OnBadBatch.SKIP)


@pytest.fixture
def stage() -> Stage:
    """The source stamps append time and the target does not: every batch must be opened."""
    stage = Stage(random.Random(1), Shape(partitions=2, source_brokers=1, target_brokers=1))
    stage.source.topics[TOPIC].config["message.timestamp.type"] = "LogAppendTime"
    stage.target.create(StateTopic.DEAD_LETTERS.of(stage.plan().flow.source))
    return stage


@pytest.fixture
def tasks() -> Iterator[list[RunningTask]]:
    started: list[RunningTask] = []
    yield started
    for task in started:
        task.kill()


def write_large(stage: Stage, *contents: bytes) -> None:
    """A batch of the next records of partition 0, with these as their keys."""
    ledger = stage.records.ledgers[0]
    first = ledger.count
    records = [Rec(at, -1, key, b"%d" % (first + at)) for at, key in enumerate(contents)]
    log = stage.source.log(TopicPartition(TOPIC, 0))
    appended = log.append(bytes(encode(records, codec=ZSTD)), stage.source.now_ms())
    assert appended.error == 0
    ledger.add(decoded(log.batches[-1].data).records, Due.MUST)
    stage.source.changed()


def limited(stage: Stage, reactions: object = DEFAULT_REACTIONS) -> TaskPlan:
    settings = CopySettings(reactions, decompressed_bytes_max=MB)  # type: ignore[arg-type] # of its type
    return replace(stage.plan(), settings=settings)


def run_for(stage: Stage, seconds: float) -> None:
    stage.run_until(lambda: False, seconds)


def copies(task: RunningTask) -> list[PartitionCopy]:
    return list(task.loop.parts.copies)


def test_a_batch_beyond_the_limit_stops_its_partition_alone_and_names_the_option(
    stage: Stage, tasks: list[RunningTask]
) -> None:
    stage.write(0, 3)
    write_large(stage, bytes(2 * MB))
    stage.write(0, 2)
    tasks.append(RunningTask(stage.network, limited(stage)))
    run_for(stage, WAIT_S)
    stage.write(1, 5)
    run_for(stage, WAIT_S)
    assert (stage.copied(0), stage.copied(1)) == ([0, 1, 2], [0, 1, 2, 3, 4])
    stuck, healthy = copies(tasks[0])
    assert "offset 3: decompressed it has more than 1048576 bytes" in str(stuck.error)
    assert OPTION in str(stuck.error)
    assert healthy.error is None


def test_a_larger_limit_lets_it_through(stage: Stage, tasks: list[RunningTask]) -> None:
    write_large(stage, bytes(2 * MB))
    stage.write(0, 2)
    tasks.append(stage.run_task())
    run_for(stage, WAIT_S)
    assert stage.copied(0) == [0, 1, 2]


def test_a_batch_beyond_the_limit_is_left_out_under_skip(stage: Stage, tasks: list[RunningTask]) -> None:
    stage.write(0, 3)
    write_large(stage, bytes(2 * MB), b"another")
    stage.write(0, 2)
    tasks.append(RunningTask(stage.network, limited(stage, SKIP)))
    run_for(stage, WAIT_S)
    assert stage.copied(0) == [0, 1, 2, 5, 6]
    assert copies(tasks[0])[0].incidents == {IncidentKind.BATCH_SKIPPED: 1}


def test_a_hundred_tiny_batches_that_hold_too_much_together_are_copied(
    stage: Stage, tasks: list[RunningTask]
) -> None:
    for _ in range(100):
        write_large(stage, bytes(MB // 2))
    tasks.append(RunningTask(stage.network, limited(stage)))
    assert stage.run_until(lambda: len(stage.copied(0)) == 100, 60.0)


def test_what_is_decompressed_for_the_target_is_copied_in_turns(
    stage: Stage, tasks: list[RunningTask]
) -> None:
    """24 batches that one fetch returns: of each partition no more is taken than there is room for."""
    stage.target.topics[REMOTE].config["max.message.bytes"] = str(2 * MB)
    for _ in range(24):
        write_large(stage, bytes(MB - 1000))
    stage.write(1, 5)
    plan = limited(stage)
    uncompressed = replace(plan.producer, compression="none")
    plan = replace(plan, producer=uncompressed, buffer_bytes_max=MB)
    tasks.append(RunningTask(stage.network, plan))
    most = 0

    def all_are_copied() -> bool:
        nonlocal most
        most = max(most, sum(copy.outstanding_bytes for copy in copies(tasks[0])))
        return len(stage.copied(0)) == 24 and len(stage.copied(1)) == 5

    assert stage.run_until(all_are_copied, 120.0)
    assert stage.copied(0) == list(range(24))
    assert 2 * MB < most <= plan.outstanding_bytes_max + MB


def test_a_batch_larger_than_the_buffer_is_followed_by_the_next(
    tasks: list[RunningTask],
) -> None:
    """It is all that is outstanding: no later acknowledgement frees anything."""
    stage = Stage(random.Random(1), Shape(partitions=1, source_brokers=1, target_brokers=1))
    for topic in (stage.source.topics[TOPIC], stage.target.topics[REMOTE]):
        topic.config["max.message.bytes"] = str(4 * MB)
    for _ in range(6):
        write_large(stage, random.randbytes(3 * MB))
    tasks.append(RunningTask(stage.network, replace(stage.plan(), buffer_bytes_max=2 * MB)))
    assert stage.run_until(lambda: stage.copied(0) == list(range(6)), 60.0)


def test_a_batch_too_large_for_the_target_that_can_not_be_split_is_refused(
    stage: Stage, tasks: list[RunningTask]
) -> None:
    """It needs not be opened, until the target refuses it."""
    stage.source.topics[TOPIC].config.clear()
    config = stage.target.topics[REMOTE].config
    config["max.message.bytes"] = "4000"
    stage.write(0, 3)
    write_large(stage, bytes(MB), random.Random(1).randbytes(6000))
    stage.write(0, 2)
    tasks.append(RunningTask(stage.network, limited(stage)))
    run_for(stage, WAIT_S)
    assert stage.copied(0) == [0, 1, 2]
    error = str(copies(tasks[0])[0].error)
    assert "MESSAGE_TOO_LARGE" in error
    assert f"it can't be split: decompressed it has more than 1048576 bytes, the limit of {OPTION}" in error
    config["max.message.bytes"] = "10000"
    run_for(stage, 60.0)
    assert stage.copied(0) == [0, 1, 2, 3, 4, 5, 6]


def test_a_queue_splits_no_batch_beyond_its_limit() -> None:
    queue = PartitionQueue(TopicPartition(REMOTE, 0), MB)
    data = memoryview(encode([Rec(0, key=bytes(MB)), Rec(1)], codec=ZSTD))
    queue.append(OutgoingBatch(data, range(2), 0))
    with pytest.raises(CorruptBatchError, match=OPTION):
        queue.split_first()
    assert [pending.batch.data for pending in queue.ready] == [data]
