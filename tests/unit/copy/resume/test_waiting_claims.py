"""Partitions that can't start are tried again, and write nothing to the target as long as nothing changes."""

import random

import pytest

from sparkmirror.domain.ids import TopicPartition
from tests.memory.checked_flow import ATTEMPTS
from tests.memory.stage import REMOTE, TOPIC, Shape, Stage

AWAY = 1


def batches(stage: Stage) -> tuple[int, int]:
    """Count the batches in the target's partition, and in the topic of attempts."""
    attempts = stage.target.topics.get(ATTEMPTS)
    of_attempts = 0 if attempts is None else sum(log.end for log in attempts.partitions)
    return stage.target.log(TopicPartition(REMOTE, AWAY)).end, of_attempts


@pytest.mark.parametrize("has_earlier_attempt", [False, True])
@pytest.mark.parametrize("has_position", [False, True])
def test_a_partition_whose_source_can_not_be_read_grows_by_no_mark(
    *, has_position: bool, has_earlier_attempt: bool
) -> None:
    stage = Stage(random.Random(1), Shape(3, source_brokers=1, target_brokers=1))
    if has_position:
        stage.write(AWAY, 50)
        first = stage.run_task()
        assert stage.run_until(lambda: stage.is_complete, 30.0)
        first.kill()
    for partition in range(3):
        stage.write(partition, 50)
    if has_earlier_attempt:  # that has only claimed the partition
        stage.source.log(TopicPartition(TOPIC, AWAY)).lead(None)
        first = stage.run_task()
        assert stage.run_until(lambda: len(stage.copied(0)) == 50, 30.0)
        first.kill()
    stage.source.log(TopicPartition(TOPIC, AWAY)).lead(None)
    stage.source.changed()
    task = stage.run_task()
    assert stage.run_until(lambda: len(stage.copied(0)) == len(stage.copied(2)) == 50, 30.0)
    stage.run_until(lambda: False, 10.0)
    before = batches(stage)
    reports = stage.target.log(TopicPartition(stage.forward.progress_topic, 0)).end
    stage.run_until(lambda: False, 240.0)
    assert batches(stage) == before
    assert stage.target.log(TopicPartition(stage.forward.progress_topic, 0)).end - reports <= 25, (
        "the task's own, every 10 s"
    )
    assert before[0] <= 51 * int(has_position) + int(has_earlier_attempt)
    stage.source.log(TopicPartition(TOPIC, AWAY)).lead(0)
    stage.source.changed()
    assert stage.run_until(lambda: stage.is_complete, 60.0)
    assert not stage.violations
    task.loop.stop()
    assert stage.run_until(lambda: task.is_over, 30.0)


def test_a_claim_that_another_attempt_has_followed_is_not_used() -> None:
    stage = Stage(random.Random(1), Shape(1, source_brokers=1, target_brokers=1))
    stage.write(0, 50)
    stage.source.log(TopicPartition(TOPIC, 0)).lead(None)
    frozen = stage.run_task()
    stage.run_until(lambda: False, 20.0)
    frozen.freeze()
    other = stage.run_task()
    stage.run_until(lambda: False, 20.0)
    stage.source.log(TopicPartition(TOPIC, 0)).lead(0)
    stage.source.changed()
    assert stage.run_until(lambda: stage.is_complete, 60.0)
    frozen.thaw()
    stage.write(0, 50)
    assert stage.run_until(lambda: stage.is_complete, 120.0)
    assert not stage.violations
    other.kill()
    frozen.kill()
