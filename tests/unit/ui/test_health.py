"""Tests what `/health` says of a mirror in this process."""

import json
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import ConnectorLook, StandingLook
from sparkmirror.storage.progress import PartitionState
from sparkmirror.ui.mirror_response import health_response, ill_flows
from sparkmirror.view.making import Node, view_of
from tests.support.mirror_looks import A_TO_B, SOURCE, look, source

REFUSED = Trouble(
    Cause(TroubleWord.NOT_CREATED, Subject.TOPIC, "no right", "give it"), "bills", partitions=(0, 1)
)
DELAYED = Trouble(Cause(TroubleWord.THROTTLED, Subject.TOPIC, "a quota"), "bills")
FAILED = look("payments", 1, {"state": PartitionState.FAILED, "error": "too large", "lag": 4})


@pytest.mark.parametrize(
    ("seen", "code", "status", "said"),
    [
        (source(look()), 200, "healthy", "a->b: caught up"),
        (replace(source(look()), troubles=[DELAYED]), 200, "healthy", "a->b: caught up"),
        (source(look(), FAILED), 500, "unhealthy", "a->b: action required: too large"),
        (
            replace(source(look()), troubles=[REFUSED]),
            500,
            "unhealthy",
            "a->b: action required: not created: no right; give it",
        ),
        (source(look(), report_age_s=60.0), 500, "unhealthy", "a->b: unknown"),
        (source(partitions=None), 503, "starting", "a->b: starting"),
        (StandingLook(A_TO_B, SOURCE, "source", None, "paused"), 200, "healthy", "a->b: paused"),
        (StandingLook(A_TO_B, SOURCE, "source", None, "stopped"), 200, "healthy", "a->b: stopped"),
        (
            StandingLook(A_TO_B, SOURCE, "source", "bad topics", "failed"),
            500,
            "unhealthy",
            "a->b: action required: bad topics",
        ),
        (
            source(look(), trouble="stopped in order", is_observed=True, is_running=False, is_stopped=True),
            200,
            "healthy",
            "a->b: stopped: stopped in order",
        ),
    ],
    ids=[
        "well",
        "delayed",
        "failed",
        "refused",
        "cut off",
        "starting",
        "paused",
        "stopped",
        "unusable",
        "ended",
    ],
)
def test_health_is_that_of_the_flows(seen: ConnectorLook, code: int, status: str, said: str) -> None:
    response = health_response(view_of(Node("node", "1"), [seen], 1000.0))
    assert (response.status_code, json.loads(bytes(response.body))) == (
        code,
        {"status": status, "message": said},
    )


def test_a_flow_that_starts_hides_none_that_is_not_well() -> None:
    back = Flow(Alias("b"), Alias("a"))
    view = view_of(Node("node", "1"), [source(look(), FAILED), source(partitions=None, flow=back)], 1000.0)
    response = health_response(view)
    assert (response.status_code, json.loads(bytes(response.body))["status"]) == (500, "unhealthy")
    assert ill_flows(view) == ["a->b: action required: too large", "b->a: starting"]


def test_without_a_flow_nothing_is_wrong() -> None:
    response = health_response(view_of(Node("node", "1"), [], 1000.0))
    assert (response.status_code, json.loads(bytes(response.body))["status"]) == (200, "healthy")
