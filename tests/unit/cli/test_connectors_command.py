import io
from pathlib import Path

import pytest

from sparkmirror.cli.commands import build_parser
from sparkmirror.cli.connectors import changing, offsets, showing
from sparkmirror.cli.main import main
from tests.unit.cli.small_connect import SmallConnect

VERBS = [
    "list",
    "status",
    "config",
    "create",
    "put",
    "patch",
    "pause",
    "resume",
    "stop",
    "restart",
    "delete",
    "tasks",
    "topics",
    "plugins",
    "validate",
    "loggers",
]


@pytest.mark.parametrize(
    "verb", [[verb] for verb in VERBS] + [["offsets", action] for action in ("show", "alter", "reset")]
)
def test_help_teaches_with_exit_codes(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["connectors", *verb, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert f"sparkmirror connectors {' '.join(verb)} " in said
    assert "exit codes: 0 done, 1 " in said


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["list", "surplus"],
        ["pause"],
        ["status", ""],
        ["list", "--url", "x", "--context", "y"],
        ["restart", "a", "--task", "-1"],
    ],
)
def test_wrong_usage_ends_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["connectors", *words])
    assert caught.value.code == 2


def test_nobody_who_answers_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connectors", "list", "--url", "http://127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "sparkmirror connectors list: http://127.0.0.1:1: no server responds; does a Connect worker"
    )
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "topics=a"], "name: is missing"),
        (["put", "msc", "name=other"], "Invalid value other for configuration name: is not msc"),
        (["patch", "msc"], "is given nothing to change"),
        (["validate", "topics=a"], "connector.class: is missing"),
        (["put", "msc", "nowhere.json"], "nowhere.json: No such file"),
        (["offsets", "alter", "msc", "nowhere.json"], "nowhere.json: No such file"),
    ],
)
def test_what_cannot_be_used_ends_with_2_before_anybody_is_asked(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connectors", *words, "--url", "http://127.0.0.1:1"]) == 2
    assert said in capsys.readouterr().err


def test_one_that_is_refused_keeps_no_other_back(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect._put("b", {})
    delete = next(move for move in changing._MOVES if move.verb == "delete")
    arguments = build_parser().parse_args(["connectors", "delete", "a", "b", "--wait"])
    assert changing._move(connect.rest(), arguments, delete) == 1
    assert connect.configs == {}
    said = capsys.readouterr()
    assert said.out == "b: deleted\nb: gone\n"
    assert said.err == "a: 404 Not Found: Connector a not found\n"


def test_what_fails_is_waited_for_no_longer_and_its_cause_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect = SmallConnect()
    connect._put("msc", {})
    connect.states["msc"] = "FAILED"
    arguments = build_parser().parse_args(["connectors", "restart", "msc", "--wait"])
    assert changing._wait(connect.rest(), arguments, ["msc"], "RUNNING") == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "msc: the connector is FAILED, task 0 is FAILED"
    assert (
        said[1] == "msc: org.apache.kafka.ConnectException: it broke; Caused by: java.io.IOException: no disk"
    )


def test_offsets_of_a_connector_that_is_not_stopped_are_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect = SmallConnect()
    connect._put("msc", {})
    arguments = build_parser().parse_args(["connectors", "offsets", "reset", "msc", "--yes"])
    assert offsets._reset(connect.rest(), arguments) == 1
    assert (
        "msc is RUNNING, and its offsets can be changed only while it is STOPPED" in capsys.readouterr().err
    )
    assert connect.changes() == []


def test_nothing_is_reset_where_nobody_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    connect = SmallConnect()
    connect._put("msc", {})
    connect.states["msc"] = "STOPPED"
    arguments = build_parser().parse_args(["connectors", "offsets", "reset", "msc"])
    assert offsets._reset(connect.rest(), arguments) == 2
    assert "--yes resets without" in capsys.readouterr().err
    assert connect.changes() == []


def test_a_connector_that_is_absent_keeps_no_other_back(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect._put("b", {})
    arguments = build_parser().parse_args(["connectors", "status", "a", "b"])
    assert showing._status(connect.rest(), arguments) == 1
    assert capsys.readouterr().out.splitlines() == [
        "CONNECTOR  TASK  STATE    WORKER",
        "b                RUNNING  w:8083",
        "b          0     RUNNING  w:8083",
        "a does not exist, or has no status yet",
    ]
