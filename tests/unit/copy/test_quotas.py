"""Copying between clusters in memory whose quotas throttle: at their rate, and without an error."""

import random
from statistics import linear_regression

import pytest

from sparkmirror.copy.copy_state import Phase
from sparkmirror.domain.ids import TopicPartition
from tests.memory.cluster import MemoryCluster
from tests.memory.stage import RunningTask, Shape, Stage

RATE = 12_000.0
FAST = 200_000.0
WINDOW_S = 11.0
"""A broker measures a rate over that time, and lets pass as much at once before."""
PARTITIONS = 3


def stage_of(records: int, *, is_transactional: bool = False) -> Stage:
    shape = Shape(PARTITIONS, source_brokers=1, target_brokers=1, is_transactional=is_transactional)
    stage = Stage(random.Random(1), shape)
    write(stage, records)
    return stage


def write(stage: Stage, records: int) -> None:
    for partition in range(PARTITIONS):
        for _ in range(records // 100):
            stage.write(partition, 100)


def copied_per_s(stage: Stage, seconds: int) -> float:
    """Return the bytes of whole batches, as a slope: they come at intervals."""
    logs = [stage.target.log(TopicPartition(stage.forward.ends.remote, at)) for at in range(PARTITIONS)]
    times, copied = [], []
    for _ in range(seconds):
        stage.run_until(lambda: False, 1.0)
        times.append(stage.time.time())
        copied.append(sum(len(batch.data) for log in logs for batch in log.batches))
    return linear_regression(times, copied).slope


def errors(task: RunningTask) -> list[str]:
    return [str(copy.error) for copy in task.loop.parts.copies if copy.error is not None]


def assert_completes_without_error(stage: Stage, task: RunningTask, within_s: float) -> None:
    seen: list[str] = []

    def is_complete() -> bool:
        seen.extend(errors(task))
        return stage.is_complete

    assert stage.run_until(is_complete, within_s), [copy.state for copy in task.loop.parts.copies]
    assert not seen
    assert not stage.violations


@pytest.mark.parametrize("is_transactional", [False, True])
@pytest.mark.parametrize("side", ["source", "target"])
def test_copying_is_steady_at_a_quota(side: str, *, is_transactional: bool) -> None:
    """Whole batches arrive at that rate: a broker counts what it sends of one that it cuts."""
    stage = stage_of(0, is_transactional=is_transactional)
    stage.records.mark = b"v" * 12_000
    for partition in range(PARTITIONS):
        for _ in range(450):
            stage.write(partition, 1)
    limited: MemoryCluster = getattr(stage, side)
    limited.quotas.set(**{"consumer" if side == "source" else "producer": FAST})
    began = stage.time.time()
    task = stage.run_task()
    assert stage.run_until(lambda: stage.time.time() > began + 2 * WINDOW_S, 30.0)
    load = task.loop.parts.load()
    assert (load.source_throttled if side == "source" else load.target_throttled) > 0.3
    assert copied_per_s(stage, 4 * int(WINDOW_S)) >= 0.95 * FAST
    assert_completes_without_error(stage, task, 300.0)


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_crash_is_resumed_from_under_a_quota_for_reading_the_target(*, is_transactional: bool) -> None:
    """Records behind the stored positions are read back, after the throttle times that this takes."""
    stage = stage_of(1_000, is_transactional=is_transactional)
    task = stage.run_task()
    assert stage.run_until(lambda: len(stage.copied(0)) >= 300, 60.0)
    task.kill()
    stage.target.quotas.set(consumer=RATE)
    write(stage, 200)
    assert_completes_without_error(stage, stage.run_task(), 300.0)


def test_every_request_may_be_throttled() -> None:
    stage = stage_of(300)
    stage.source.quotas.requests_s = stage.target.quotas.requests_s = 1.0
    assert_completes_without_error(stage, stage.run_task(), 300.0)


def test_a_quota_that_lets_nothing_through_is_said_until_it_does() -> None:
    stage = stage_of(100)
    stage.source.quotas.set(consumer=20.0)
    task = stage.run_task()
    assert stage.run_until(lambda: len(errors(task)) == PARTITIONS, 240.0)
    assert "throttles: a quota" in errors(task)[0]
    assert {copy.state.phase for copy in task.loop.parts.copies} == {Phase.COPYING}
    stage.source.quotas.set()
    assert stage.run_until(lambda: stage.is_complete and not errors(task), 120.0)
    assert not stage.violations
