"""Several partitions of a copy task on clusters in memory."""

import random
from collections.abc import Callable
from typing import Final

import pytest

from sparkmirror.domain.ids import TopicPartition
from tests.memory.partition_log import PartitionLog
from tests.memory.stage import REMOTE, Shape, Stage

HELD: Final = range(1, 7)
"""Partitions of the target whose followers do not follow: nothing is acknowledged."""

BROKER_SESSION_S: Final = 9.0
CONNECTION_TIMEOUT_S: Final = 10.0
"""`broker.session.timeout.ms` and `socket.connection.setup.timeout.ms`, by default."""


def stage_with_backlog() -> Stage:
    """The held partitions together have more than fits into the task's buffer."""
    stage = Stage(random.Random(1), Shape(7, source_brokers=1, target_brokers=1, buffer_bytes=200_000))
    for partition in HELD:
        for _ in range(10):
            stage.write(partition, 500)
        stage.target.log(TopicPartition(REMOTE, partition)).hold()
    return stage


def test_partitions_that_can_be_written_are_copied_beside_those_that_can_not() -> None:
    stage = stage_with_backlog()
    task = stage.run_task()
    for _ in range(2):
        stage.write(0, 100)
        expected = list(range(stage.written[0]))
        assert stage.run_until(lambda expected=expected: stage.copied(0) == expected, 30.0)  # type: ignore[misc]
        stage.run_until(lambda: False, 10.0)
    for partition in HELD:
        stage.target.log(TopicPartition(REMOTE, partition)).release()
    assert stage.run_until(lambda: stage.is_complete, 120.0)
    task.loop.stop()
    assert stage.run_until(lambda: task.is_over, 30.0)
    assert not stage.violations


def miss_replicas(stage: Stage, logs: list[PartitionLog]) -> None:
    """Brokers answer NOT_ENOUGH_REPLICAS."""
    for log in logs:
        log.in_sync = 1
    write_backlog(stage, logs)


def miss_replicas_after_append(stage: Stage, logs: list[PartitionLog]) -> None:
    """Replicas leave while records wait for them: NOT_ENOUGH_REPLICAS_AFTER_APPEND, then as above."""
    for log in logs:
        log.hold()
    write_backlog(stage, logs)
    stage.run_until(lambda: all(log.end for log in logs), 10.0)
    for log in logs:
        log.in_sync = 1
        log.release()
    stage.target.changed()


def write_backlog(stage: Stage, logs: list[PartitionLog]) -> None:
    """Together more than fits into the task's buffer."""
    for partition, log in enumerate(stage.target.topics[REMOTE].partitions):
        for _ in range(3 if log in logs else 0):
            stage.write(partition, 500)


@pytest.mark.parametrize("miss", [miss_replicas, miss_replicas_after_append])
def test_two_partitions_are_copied_at_once_beside_forty_that_miss_replicas(
    miss: Callable[[Stage, list[PartitionLog]], None],
) -> None:
    stage = Stage(random.Random(1), Shape(42, source_brokers=1, target_brokers=2, buffer_bytes=1 << 20))
    topic = stage.target.topics[REMOTE]
    topic.config["min.insync.replicas"] = "2"
    healthy, stuck = topic.partitions[:2], topic.partitions[2:]
    task = stage.run_task()
    stage.run_until(lambda: False, 2.0)
    miss(stage, stuck)
    for number in range(1, 16):
        stage.write(0, 100)
        stage.write(1, 100)
        assert stage.run_until(lambda end=number * 100: all(log.end == end for log in healthy), 3.0)  # type: ignore[misc]
        stage.run_until(lambda: False, 1.0)
    for log in stuck:
        log.in_sync = 2
    assert stage.run_until(lambda: all(log.end == 1500 for log in topic.partitions), 60.0)
    assert not stage.violations
    task.kill()


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_task_starts_beside_a_broker_that_hangs_after_one_connection_timeout(side: str) -> None:
    """The cluster gives its partitions to other brokers after its session; it still accepts connections."""
    stage = Stage(random.Random(1), Shape(6, source_brokers=3, target_brokers=3))
    cluster = stage.source if side == "source" else stage.target
    hung = cluster.brokers[0]
    stage.network.hung.add(hung)
    stage.time.call_later(BROKER_SESSION_S, cluster.stop, hung)
    for partition in range(6):
        stage.write(partition, 10)
    task = stage.run_task()
    began = stage.time.time()
    stage.run_until(lambda: stage.is_complete, 60.0)
    assert stage.time.time() - began < CONNECTION_TIMEOUT_S + 1.0
    task.kill()
