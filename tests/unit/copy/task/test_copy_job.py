"""Reasons of a Spark job's end are extracted from the JVM's error."""

from sparkmirror.copy.task.copy_job import in_one_line

FROM_JAVA = """An error occurred while calling o56.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2784)
"""


def test_what_java_said_is_the_line_after_the_call() -> None:
    assert in_one_line(RuntimeError(FROM_JAVA)) == (
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed"
    )


def test_anything_else_is_its_first_line() -> None:
    assert in_one_line(OSError("Connection refused\nmore")) == "Connection refused"


def test_an_error_without_words_is_its_name() -> None:
    assert in_one_line(KeyError()) == "KeyError()"
