import json

import pytest

from sparkmirror.cli.connectors.showing import cause, status_view
from sparkmirror.cli.connectors.views import View, masked, show
from sparkmirror.cli.connectors.watching import Changes
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
    assert not view.is_well
    assert view.lines() == [
        "CONNECTOR  TASK  STATE    WORKER",
        "msc              RUNNING  w:8083",
        "msc        2     RUNNING  v:8083",
        "msc        10    FAILED   w:8083",
        "msc task 10: org.apache.kafka.ConnectException: it broke; Caused by: java.io.IOException: no disk",
    ]


def test_all_is_well_when_everything_runs() -> None:
    assert status_view([{**STATUS, "tasks": STATUS["tasks"][1:]}], None).is_well
    assert status_view([], None).is_well


def test_the_cause_of_nothing_is_nothing() -> None:
    assert cause("") == ""


def test_programs_get_what_the_api_said(capsys: pytest.CaptureFixture[str]) -> None:
    show(status_view([STATUS], [STATUS]), "json")
    assert json.loads(capsys.readouterr().out) == [STATUS]
    show(View({"topics": "ö", "off": "no"}, (), ()), "yaml")
    assert capsys.readouterr().out == "topics: ö\n'off': 'no'\n"


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    view = View(None, ("name",), [("a\x1b[2Jb\n",)], notes=["x\ty"])
    assert view.lines() == ["NAME", "a\\x1b[2Jb\\n", "x\\ty"]


def test_secrets_are_masked_and_placeholders_are_none() -> None:
    config = {
        "source.cluster.sasl.jaas.config": "s3cret",
        "ssl.keystore.password": "${file:/a:b}",
        "ssl.key.password": "",
        "basic.auth.user.info": "${env:A}s3cret",
        "topics": "orders",
    }
    assert masked(config) == {
        "source.cluster.sasl.jaas.config": "[hidden]",
        "ssl.keystore.password": "${file:/a:b}",
        "ssl.key.password": "",
        "basic.auth.user.info": "[hidden]",
        "topics": "orders",
    }
    assert masked(config, show_secrets=True) == config


def test_a_pipe_gets_what_is_new_has_changed_or_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    changes = Changes(clock=lambda: "12:00:00")
    for rows in (
        [("msc", "0", "RUNNING"), ("cpc", "", "RUNNING")],
        [("msc", "0", "RUNNING"), ("cpc", "", "RUNNING")],
        [("msc", "0", "FAILED")],
    ):
        changes.tell(View(None, ("connector", "task", "state"), rows, 2))
    assert capsys.readouterr().out.splitlines() == [
        "12:00:00  msc  0  RUNNING",
        "12:00:00  cpc    RUNNING",
        "12:00:00  msc  0  FAILED",
        "12:00:00  cpc    is gone",
    ]
