"""A job that fails again and again is logged rarely."""

import logging
from collections.abc import Mapping

import pytest

from sparkmirror.domain.errors import (
    AuthorizationError,
    ClusterChangedError,
    DisconnectedError,
    RetriableError,
    SparkmirrorError,
    ThrottledError,
)
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.job_failures import JobFailures

AWAY = DisconnectedError("no answer")
REFUSED = AuthorizationError("no right")


@pytest.fixture
def failures(caplog: pytest.LogCaptureFixture) -> JobFailures:
    caplog.set_level(logging.INFO)
    return JobFailures(flow_log("job failures", Flow(Alias("a"), Alias("b"))))


def fail(failures: JobFailures, error: SparkmirrorError, seconds: int) -> None:
    """Once a second."""
    for now in range(seconds):
        failures.failed("emit", error, float(now))


def test_a_job_that_fails_each_second_is_logged_once_a_minute(
    failures: JobFailures, caplog: pytest.LogCaptureFixture
) -> None:
    fail(failures, REFUSED, 130)
    assert failures.now == "emit failed: no right"
    failures.worked("emit", 130.0)
    assert failures.now is None
    failures.worked("emit", 131.0)
    assert caplog.messages == [
        "emit failed: no right",
        "emit has failed for 60 s: no right",
        "emit has failed for 120 s: no right",
        "emit works again after 130 s",
    ]


def test_an_outage_is_not_repeated_for_each_job(
    failures: JobFailures, caplog: pytest.LogCaptureFixture
) -> None:
    fail(failures, AWAY, 130)
    failures.worked("emit", 130.0)
    assert caplog.messages == ["emit failed: no answer", "emit works again after 130 s"]


def test_a_job_that_works_is_not_logged(failures: JobFailures, caplog: pytest.LogCaptureFixture) -> None:
    failures.worked("emit", 0.0)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("error", "lasts_from_s"),
    [
        (REFUSED, 0),
        (RetriableError("NOT_ENOUGH_REPLICAS"), 60),
        (AWAY, None),
        (ThrottledError("a quota"), None),
        (ClusterChangedError("another one"), None),
    ],
    ids=["refused", "retriable", "away", "throttled", "changed"],
)
def test_a_listener_gets_what_does_not_pass_by_itself_and_is_no_cluster_s(
    failures: JobFailures, error: SparkmirrorError, lasts_from_s: int | None
) -> None:
    told: list[tuple[int, Mapping[str, str]]] = []
    now = 0
    failures.listener = lambda of: told.append((now, of))
    for now in range(200):
        failures.failed("emit", error, float(now))
    failures.worked("emit", 200.0)
    begun = [(lasts_from_s, {"emit": str(error)}), (199, {})]
    assert told == ([] if lasts_from_s is None else begun)


def test_a_thread_that_can_t_begin_tells_the_listener_why(failures: JobFailures) -> None:
    told: list[Mapping[str, str]] = []
    failures.listener = told.append
    for error in (AWAY, REFUSED, REFUSED, None):
        failures.not_begun("source connector", error)
    assert told == [{"source connector": "no right"}, {}]
