"""Log lines about the tasks of a Spark job, and their rate."""

import logging
from dataclasses import dataclass, field

import pytest

from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.spark.host import JobState
from sparkmirror.spark.spark_watch import SparkWatch

LOST = "ExecutorLostFailure (executor 1 exited): Remote RPC client disassociated\nand more"


@dataclass
class Job:
    """Stands for a CopyJob; notes what its asker knew."""

    current: JobState | None = None
    known: list[int] = field(default_factory=list)

    def state(self, known_failures: int) -> JobState | None:
        self.known.append(known_failures)
        return self.current


@pytest.fixture
def watch(caplog: pytest.LogCaptureFixture) -> SparkWatch:
    caplog.set_level(logging.INFO)
    return SparkWatch(flow_log("watched", Flow(Alias("A"), Alias("B"))))


def test_nothing_is_logged_without_problems(watch: SparkWatch, caplog: pytest.LogCaptureFixture) -> None:
    job = Job()
    watch.check(job, 0.0)
    job.current = JobState(tasks=2, waiting=0, failures=0)
    watch.check(job, 100.0)
    assert not caplog.messages


def test_lost_attempts_are_logged_at_once_and_then_once_a_minute(
    watch: SparkWatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(JobState(2, 0, failures=1, last_failure=LOST))
    watch.check(job, 100.0)
    (said,) = caplog.messages
    assert said == f"Spark lost 1 attempts of tasks and retries them: {LOST.splitlines()[0]}"
    job.current = JobState(2, 0, failures=40, last_failure=LOST)
    watch.check(job, 102.0)
    assert len(caplog.messages) == 1
    job.current = JobState(2, 0, failures=800, last_failure=LOST)
    watch.check(job, 161.0)
    assert caplog.messages[1].startswith("Spark lost 799 ")
    assert job.known == [0, 1, 40]


def test_errors_that_a_task_reports_itself_are_not_logged_again(
    watch: SparkWatch, caplog: pytest.LogCaptureFixture
) -> None:
    failure = (
        "pyspark.errors.PythonException: ... sparkmirror.copy.task.copy_task.TaskFailedError: out of touch"
    )
    watch.check(Job(JobState(2, 0, failures=1, last_failure=failure)), 0.0)
    assert not caplog.messages


def test_tasks_that_wait_long_are_logged_once(watch: SparkWatch, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(JobState(tasks=4, waiting=3, failures=0))
    for now in (0.0, 9.0):
        watch.check(job, now)
    assert not caplog.messages
    assert not watch.waiting
    for now in (10.0, 12.0):
        watch.check(job, now)
    assert caplog.messages == ["3 of 4 tasks wait for a slot of Spark, and their partitions are not copied"]
    (told,) = watch.waiting
    assert (told.what, told.word, told.requires_action) == ("tasks", "waiting", False)
    assert told.reason == "3 of 4 wait for a slot of Spark, and their partitions are not copied"
    job.current = JobState(tasks=4, waiting=0, failures=0)
    watch.check(job, 14.0)
    assert not watch.waiting


def test_the_next_copy_job_is_watched_from_zero(watch: SparkWatch, caplog: pytest.LogCaptureFixture) -> None:
    watch.check(Job(JobState(4, 3, failures=5)), 0.0)
    after = Job(JobState(4, 3, failures=0))
    watch.check(after, 20.0)
    assert after.known == [0]
    assert not caplog.messages
