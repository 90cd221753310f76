"""Private members of PySpark, and methods of Spark that it does not show, mean what this package expects."""

from pyspark import SparkContext

from sparkmirror.copy.task.outcomes import SCHEMA, Outcome
from sparkmirror.spark import private_members
from sparkmirror.spark.executors import executor_slots, job_state
from sparkmirror.spark.host import SparkJob
from sparkmirror.spark.session import Session
from tests.spark.running_job import own_jvm


def test_the_gateway_and_the_context_of_this_process_are_found(session: Session) -> None:
    assert private_members.running_gateway() is own_jvm(session).gateway
    assert private_members.has_context()
    context = session.spark.sparkContext
    assert context is SparkContext.getOrCreate()
    assert private_members.jvm_of(context).java.lang.Math.abs(-7) == 7
    assert not private_members.is_stopped(context)


def test_a_jobs_state_and_its_failure_are_found_by_its_tag(session: Session) -> None:
    def fail(batches):  # type: ignore[no-untyped-def]
        for _ in batches:
            yield Outcome.empty_batch()
        raise ValueError("planned")

    host = session.host
    job = SparkJob(fail, 1, SCHEMA, "a tag of this test", "fails")
    assert host.state(job.tag) is None
    running = host.submit(job)
    try:
        state = None
        while state is None or not state.failures:
            assert not running.done()
            state = host.state(job.tag)
        assert state.last_failure is not None
        assert "planned" in state.last_failure
        again = job_state(session.spark.sparkContext, job.tag, known_failures=10**9)
        assert again is not None
        assert (again.tasks, again.last_failure, again.leaving) == (1, None, 0)
    finally:
        host.cancel(job.tag)
    assert running.exception(timeout=60) is not None


def test_no_executor_of_a_local_master_is_counted_or_leaves(session: Session) -> None:
    context = session.spark.sparkContext
    assert executor_slots(context) == 0
    assert not private_members.is_decommissioned(context, "driver")
    assert private_members.status_store(context).executorList(True).length() == 1
