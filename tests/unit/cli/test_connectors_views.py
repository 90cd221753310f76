import json

import pytest

from sparkmirror.cli.commands.connectors.command import cause, status_view
from sparkmirror.cli.commands.connectors.views import View, show
from sparkmirror.client.connect_objects import ConnectorStateInfo
from tests.unit.cli.small_connect import TRACE

STATUS: ConnectorStateInfo = {
    "name": "msc",
    "connector": {"state": "RUNNING", "worker_id": "w:8083"},
    "tasks": [
        {"id": 10, "state": "FAILED", "worker_id": "w:8083", "trace": TRACE},
        {"id": 2, "state": "RUNNING", "worker_id": "v:8083"},
    ],
}


def test_a_status_has_a_row_for_each_task_in_their_order_and_the_cause_below() -> None:
    view = status_view([STATUS], [STATUS])
    assert view.code == 1
    assert view.lines() == [
        "CONNECTOR  TASK  STATE    WORKER",
        "msc              RUNNING  w:8083",
        "msc        2     RUNNING  v:8083",
        "msc        10    FAILED   w:8083",
        "msc task 10: org.apache.kafka.ConnectException: it broke; Caused by: java.io.IOException: no disk",
    ]


def test_the_exit_code_is_0_when_everything_runs() -> None:
    assert status_view([{**STATUS, "tasks": STATUS["tasks"][1:]}], None).code == 0
    assert status_view([], None).code == 0


def test_an_empty_trace_has_no_cause() -> None:
    assert cause("") == ""


def test_json_holds_the_content_of_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    show(status_view([STATUS], [STATUS]), "json")
    assert json.loads(capsys.readouterr().out) == [STATUS]


def test_control_characters_are_escaped() -> None:
    view = View(None, ("name",), [("a\x1b[2Jb\n",)], notes=["x\ty"])
    assert view.lines() == ["NAME", "a\\x1b[2Jb\\n", "x\\ty"]
