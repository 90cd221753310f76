"""Executor errors are reduced to one line."""

import pytest

from sparkmirror.spark.executor_archive import NO_PYTHON_MESSAGE, python_version
from sparkmirror.spark.executors import explained

DAEMON_FAILED = """org.apache.spark.SparkException:
Error from python worker:
  %s
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip:/opt/spark/python/lib/py4j-0.10.9.9-src.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from a daemon's stdout.
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(SparkCoreErrors.scala:55)
"""


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            "ExecutorLostFailure (executor 1 exited): gone\nmore",
            "ExecutorLostFailure (executor 1 exited): gone",
        ),
        (
            DAEMON_FAILED
            % "Traceback (most recent call last):\n  ModuleNotFoundError: No module named 'pyspark'",
            "Python on an executor: ModuleNotFoundError: No module named 'pyspark'",
        ),
        ("", "no reason given"),
    ],
)
def test_an_error_is_reduced_to_its_last_line(failure: str, said: str) -> None:
    assert explained(failure) == said


def test_a_missing_python_is_reported_with_its_remedy() -> None:
    said = explained(DAEMON_FAILED % f"{NO_PYTHON_MESSAGE} 3.11 with modules .so: /usr/bin/python3")
    assert said.startswith(f"executors find no Python {python_version()} like the driver's")
    assert said.endswith("spark.pyspark.python names it")
