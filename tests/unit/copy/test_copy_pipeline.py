"""Several partitions of a copy task on clusters in memory."""

import random

from sparkmirror.domain.ids import TopicPartition
from tests.memory.stage import REMOTE, Shape, Stage

HELD = range(1, 7)
"""Partitions of the target whose followers do not follow: nothing is acknowledged."""


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
