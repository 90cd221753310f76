"""A copy job as a Spark job: its shape, how its tasks end, and what they leave."""

import re
from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.outcomes import EndReason
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.spark.executors import JobStatus
from sparkmirror.storage.progress import JobEpoch, PartitionState
from tests.spark.running_job import PARTITIONS, WAIT_S, Bed, RunningJob
from tests.support.waiting import await_value


def await_running(running: RunningJob) -> None:
    await_value(
        lambda: running.stages() == [(PARTITIONS, PARTITIONS)], WAIT_S, lambda: f"stages: {running.stages()}"
    )


def test_one_stage_with_one_task_per_plan_until_a_stop_record(bed: Bed) -> None:
    """A shuffle would let Spark start healthy tasks a second time when an executor dies."""
    bed.create_topics("Stopped")
    running = bed.run(bed.plans("Stopped"))
    await_running(running)
    bed.append_and_await_copies("Stopped")
    assert len(bed.copying_workers()) == PARTITIONS
    assert not running.has_ended
    bed.announce(JobEpoch(ConnectorName("Stopped"), 1, stopped=True))
    assert running.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]
    assert bed.stored("Stopped") == [end - 1 for end in bed.ends("Stopped")]


def test_tasks_that_copy_do_not_wait_for_a_slot(bed: Bed) -> None:
    bed.create_topics("Told")
    running = bed.run(bed.plans("Told"))
    bed.append_and_await_copies("Told")
    assert running.job.status() == JobStatus(PARTITIONS, waiting=0, failures=0)
    bed.announce(JobEpoch(ConnectorName("Told"), 1, stopped=True))
    assert running.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]


def test_a_newer_copy_job_takes_over(bed: Bed) -> None:
    bed.create_topics("Superseded")
    older = bed.run(bed.plans("Superseded", job_epoch=1))
    bed.append_and_await_copies("Superseded")
    plans = bed.plans("Superseded", job_epoch=2)  # this announces it
    assert older.reasons() == [(task, EndReason.SUPERSEDED) for task in range(PARTITIONS)]
    newer = bed.run(plans)
    bed.append_and_await_copies("Superseded")  # exactly these: it goes on where the older one was
    assert not newer.has_ended
    bed.announce(JobEpoch(ConnectorName("Superseded"), 2, stopped=True))
    assert newer.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]


def broken_inside(plan: TaskPlan) -> TaskPlan:
    return replace(plan, producer=replace(plan.producer, compression="brotli"))  # type: ignore[arg-type]  # that is the bug


def broken_at_once(plan: TaskPlan) -> TaskPlan:
    return replace(plan, consumer=None)  # type: ignore[arg-type]  # that is the bug


@pytest.mark.parametrize(
    ("broken", "error"),
    [(broken_inside, "ValueError: tuple.index"), (broken_at_once, "(Attribute|Type)Error: .")],
)
def test_a_bug_is_reported_and_its_task_started_again(
    bed: Bed, broken: Callable[[TaskPlan], TaskPlan], error: str
) -> None:
    """The other tasks go on, and a stop reaches the failed one while it waits."""
    name = f"Buggy-{broken.__name__}"
    bed.create_topics(name)
    first, *others = bed.plans(name)
    running = bed.run([broken(first), *others])
    bed.append_and_await_copies(name, partitions=[1, 2])
    await_value(lambda: running.failed_attempts() >= 2, WAIT_S, lambda: "it was not started again")
    reports = bed.progress(name)
    assert [reports[number].state for number in range(PARTITIONS)] == [
        PartitionState.FAILED,
        PartitionState.RUNNING,
        PartitionState.RUNNING,
    ]
    assert re.match(error, reports[0].error or "")
    bed.announce(JobEpoch(ConnectorName(name), 1, stopped=True))
    assert running.reasons() == [(task, EndReason.STOPPED) for task in range(PARTITIONS)]


def test_a_cancelled_job_ends_its_workers_and_they_leave_their_positions(bed: Bed) -> None:
    bed.create_topics("Cancelled")
    running = bed.run(bed.plans("Cancelled"))
    bed.append_and_await_copies("Cancelled")
    workers = bed.copying_workers()
    assert len(workers) == PARTITIONS
    running.job.cancel()
    assert running.outcomes() == ()
    _, left = psutil.wait_procs(workers, timeout=4)
    assert not left
    assert bed.stored("Cancelled") == [end - 1 for end in bed.ends("Cancelled")]
