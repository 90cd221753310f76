"""A copy job as a Spark job: stages and tasks, their ends, and the positions that they store."""

import re
from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.task.outcomes import EndReason
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.spark.host import JobState
from sparkmirror.storage.progress import JobEpoch, PartitionState
from tests.spark.running_job import PARTITIONS, WAIT_S, JobTestbed, RunningJob
from tests.support.waiting import await_value, patience


def await_running(running: RunningJob) -> None:
    await_value(
        lambda: running.stages() == [(PARTITIONS, PARTITIONS)], WAIT_S, lambda: f"stages: {running.stages()}"
    )


def test_one_stage_with_one_task_per_plan_until_a_stop_record(testbed: JobTestbed) -> None:
    """With a shuffle, Spark would restart healthy tasks when an executor is lost."""
    testbed.create_topics("Stopped")
    running = testbed.run(testbed.plans("Stopped"))
    await_running(running)
    testbed.append_and_await_copies("Stopped")
    assert len(testbed.copying_workers()) == PARTITIONS
    assert not running.has_ended
    testbed.announce(JobEpoch(ConnectorName("Stopped"), 1, stopped=True))
    assert running.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]
    assert testbed.stored("Stopped") == [end - 1 for end in testbed.ends("Stopped")]


def test_status_counts_no_copying_task_as_waiting_for_a_slot(testbed: JobTestbed) -> None:
    testbed.create_topics("Counted")
    running = testbed.run(testbed.plans("Counted"))
    testbed.append_and_await_copies("Counted")
    assert running.job.state() == JobState(PARTITIONS, waiting=0, failures=0)
    testbed.announce(JobEpoch(ConnectorName("Counted"), 1, stopped=True))
    assert running.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]


def test_newer_copy_job_supersedes_the_older_one(testbed: JobTestbed) -> None:
    testbed.create_topics("Superseded")
    older = testbed.run(testbed.plans("Superseded", job_epoch=1))
    testbed.append_and_await_copies("Superseded")
    plans = testbed.plans("Superseded", job_epoch=2)  # announces the job epoch
    assert older.reasons() == [(task, EndReason.SUPERSEDED) for task in range(PARTITIONS)]
    newer = testbed.run(plans)
    testbed.append_and_await_copies("Superseded")  # exactly these: it continues at the older job's positions
    assert not newer.has_ended
    testbed.announce(JobEpoch(ConnectorName("Superseded"), 2, stopped=True))
    assert newer.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]


def failing_in_the_task(plan: TaskPlan) -> TaskPlan:
    return replace(plan, producer=replace(plan.producer, compression="brotli"))  # type: ignore[arg-type]  # the bug


def failing_at_the_start(plan: TaskPlan) -> TaskPlan:
    return replace(plan, consumer=None)  # type: ignore[arg-type]  # the bug


@pytest.mark.parametrize(
    ("broken", "error"),
    [(failing_in_the_task, "ValueError: tuple.index"), (failing_at_the_start, "(Attribute|Type)Error: .")],
)
def test_task_with_an_unexpected_error_is_reported_and_restarted(
    testbed: JobTestbed, broken: Callable[[TaskPlan], TaskPlan], error: str
) -> None:
    """The other tasks continue, and a stop reaches the failed one while it waits for its restart."""
    name = f"Buggy-{broken.__name__}"
    testbed.create_topics(name)
    first, *others = testbed.plans(name)
    running = testbed.run([broken(first), *others])
    testbed.append_and_await_copies(name, partitions=[1, 2])
    await_value(lambda: running.failed_attempts() >= 2, WAIT_S, lambda: "it was not started again")
    reports = testbed.progress(name)
    assert [reports[number].state for number in range(PARTITIONS)] == [
        PartitionState.FAILED,
        PartitionState.RUNNING,
        PartitionState.RUNNING,
    ]
    assert re.match(error, reports[0].error or "")
    testbed.announce(JobEpoch(ConnectorName(name), 1, stopped=True))
    assert running.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]


def test_cancelled_job_ends_its_workers_after_they_store_positions(testbed: JobTestbed) -> None:
    testbed.create_topics("Cancelled")
    running = testbed.run(testbed.plans("Cancelled"))
    testbed.append_and_await_copies("Cancelled")
    workers = testbed.copying_workers()
    assert len(workers) == PARTITIONS
    running.job.cancel()
    assert running.outcomes() == ()
    _, left = psutil.wait_procs(workers, timeout=4 * patience())
    assert not left
    assert testbed.stored("Cancelled") == [end - 1 for end in testbed.ends("Cancelled")]
