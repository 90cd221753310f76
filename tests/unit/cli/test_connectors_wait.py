from collections.abc import Callable

import pytest
from urllib3 import HTTPResponse

from sparkmirror.cli.commands.connectors.wait import GONE, StateWait, WaitResult
from sparkmirror.client.connect_rest import Access, ConnectRest
from tests.support.rest_answers import Answering, Asked, answer, refusal

TIMEOUT_S = 30.0
States = Callable[[float], list[str] | None]
"""The states of the connector and its tasks at a moment; None as long as there is no status."""


def waited(wanted: str, states_at: States) -> tuple[WaitResult, float]:
    """Return how it ends, and after how many seconds."""
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    def respond(_: Asked) -> HTTPResponse:
        states = states_at(now_s)
        if states is None:
            return refusal(404, "No status found for connector msc")
        runs = [{"state": state, "worker_id": "w"} for state in states]
        tasks = [{"id": number, **run} for number, run in enumerate(runs[1:])]
        return answer(200, {"name": "msc", "connector": runs[0], "tasks": tasks})

    connect = ConnectRest(Access("http://connect"), http=Answering(respond), clock=lambda: now_s, sleep=sleep)
    (ending,) = StateWait(connect, wanted, TIMEOUT_S).results(["msc"])
    return ending, now_s


@pytest.mark.parametrize(
    ("wanted", "states_at", "why", "after_s"),
    [
        # Connect responds before it acts: for a moment the status is that of the time before.
        ("RUNNING", lambda s: None if s < 2 else ["RUNNING", "RUNNING"], None, 3.0),
        (
            "RUNNING",
            lambda s: ["RUNNING"] if s < 2 else ["RUNNING", "UNASSIGNED" if s < 4 else "RUNNING"],
            None,
            5.0,
        ),
        ("RUNNING", lambda s: ["FAILED" if s < 2 else "RUNNING", "RUNNING"], None, 3.0),
        ("RUNNING", lambda _: ["RUNNING"], None, 3.0),
        ("RUNNING", lambda _: ["RUNNING", "RUNNING", "FAILED"], "task 1 is FAILED", 3.0),
        ("RUNNING", lambda _: ["STOPPED"], "the connector is STOPPED", 3.0),
        ("RUNNING", lambda _: ["UNASSIGNED"], "the connector is UNASSIGNED after 30 s", TIMEOUT_S),
        ("RUNNING", lambda _: None, "does not exist after 30 s", TIMEOUT_S),
        (GONE, lambda s: ["RUNNING"] if s < 1 else None, None, 2.0),
        # It was deleted while it started.
        (GONE, lambda s: ["RUNNING"] if s == 0.5 else None, None, 2.0),
        (GONE, lambda _: ["RUNNING"], "is still there after 30 s", TIMEOUT_S),
    ],
)
def test_a_state_ends_the_wait_once_it_has_lasted(
    wanted: str, states_at: States, why: str | None, after_s: float
) -> None:
    ending, waited_s = waited(wanted, states_at)
    assert (ending.why, waited_s) == (why, after_s)
    assert (ending.status is None) == (states_at(after_s) is None)
