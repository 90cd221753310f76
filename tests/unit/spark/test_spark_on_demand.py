import logging
import threading
from pathlib import Path
from typing import cast

import pytest

from sparkmirror.spark.session import Session
from sparkmirror.spark.spark_on_demand import SparkOnDemand


class SlowSession:
    """Comes up when it is told to."""

    def __init__(self) -> None:
        self.comes_up = threading.Event()
        self.is_closed = threading.Event()

    def start(self, *_: object) -> Session:
        assert self.comes_up.wait(10)
        return cast("Session", self)

    def close(self) -> None:
        self.is_closed.set()


def test_a_session_that_is_just_starting_is_not_waited_for_and_ends_as_soon_as_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    session = SlowSession()
    monkeypatch.setattr(Session, "start", session.start)
    spark = SparkOnDemand.own({}, 1, tmp_path / "log")
    asked = spark.session()
    assert spark.is_starting
    assert caplog.messages == ["starting Spark on local[1] …"]
    spark.cancel_start()
    assert asked.cancelled()
    assert (spark.is_starting, spark.failure, spark.jvm()) == (False, None, None)
    spark.close()
    session.comes_up.set()
    assert session.is_closed.wait(10)
