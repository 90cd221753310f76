"""What `/health` says of a mirror in this process."""

import json
from dataclasses import replace

import pytest

from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.storage.progress import PartitionState
from sparkmirror.ui.mirror_response import health_response
from sparkmirror.view.making import Node, view_of
from tests.support.mirror_looks import look, source

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
    ],
    ids=["well", "delayed", "failed", "refused", "cut off"],
)
def test_health_is_that_of_the_flows(seen: ConnectorLook, code: int, status: str, said: str) -> None:
    response = health_response(view_of(Node("node", "1"), [seen], 1000.0))
    assert (response.status_code, json.loads(bytes(response.body))) == (
        code,
        {"status": status, "message": said},
    )


def test_without_a_flow_nothing_is_wrong() -> None:
    response = health_response(view_of(Node("node", "1"), [], 1000.0))
    assert (response.status_code, json.loads(bytes(response.body))["status"]) == (200, "healthy")
