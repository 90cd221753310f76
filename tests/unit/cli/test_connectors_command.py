import io
from pathlib import Path

import pytest

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
def test_help_names_examples_and_exit_codes(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["connectors", *verb, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert f"sparkmirror connectors {' '.join(verb)} " in said
    assert "exit codes:\n  0    done; status: everything runs\n  1    " in said


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


def test_an_unreachable_worker_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
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
        (["patch", "msc"], "has nothing to change"),
        (["validate", "topics=a"], "connector.class: is missing"),
        (["put", "msc", "nowhere.json"], "nowhere.json: No such file"),
        (["offsets", "alter", "msc", "nowhere.json"], "nowhere.json: No such file"),
    ],
)
def test_unusable_input_ends_with_2_before_a_request(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connectors", *words, "--url", "http://127.0.0.1:1"]) == 2
    assert said in capsys.readouterr().err


def test_a_refused_connector_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect.put("b", {})
    assert connect.run("connectors", "delete", "a", "b", "--wait") == 1
    assert connect.configs == {}
    said = capsys.readouterr()
    assert said.out == "b: deleted\nb: gone\n"
    assert said.err == "a: 404 Not Found: Connector a not found\n"


def test_keys_that_nothing_reads_are_told_to_whoever_typed_them(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    source = "connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector"
    assert connect.run("connectors", "put", "msc", source, "topcis=orders") == 0
    assert capsys.readouterr().err == "msc: nothing reads topcis (did you mean topics?)\n"
    assert connect.run("connectors", "put", "sink", "connector.class=a.Sink", "topcis=orders") == 0
    assert capsys.readouterr().err == ""


def test_waiting_ends_at_a_failure_with_its_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect.put("msc", {})
    connect.states["msc"] = "FAILED"
    assert connect.run("connectors", "restart", "msc", "--wait") == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "msc: the connector is FAILED, task 0 is FAILED"
    assert (
        said[1] == "msc: org.apache.kafka.ConnectException: it broke; Caused by: java.io.IOException: no disk"
    )


def test_offsets_of_a_running_connector_are_not_reset(
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect = SmallConnect()
    connect.put("msc", {})
    assert connect.run("connectors", "offsets", "reset", "msc", "--yes") == 1
    assert (
        "msc is RUNNING, and its offsets can be changed only while it is STOPPED" in capsys.readouterr().err
    )
    assert connect.changes() == []


def test_a_reset_without_a_terminal_needs_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    connect = SmallConnect()
    connect.put("msc", {})
    connect.states["msc"] = "STOPPED"
    assert connect.run("connectors", "offsets", "reset", "msc") == 2
    assert "confirm with --yes" in capsys.readouterr().err
    assert connect.changes() == []


def test_status_of_an_absent_connector_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect.put("b", {})
    assert connect.run("connectors", "status", "a", "b") == 1
    assert capsys.readouterr().out.splitlines() == [
        "CONNECTOR  TASK  STATE    WORKER",
        "b                RUNNING  w:8083",
        "b          0     RUNNING  w:8083",
        "a does not exist, or has no status yet",
    ]
