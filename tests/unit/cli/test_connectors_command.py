from pathlib import Path

import pytest

from sparkmirror.cli.main import main
from tests.unit.cli.small_connect import SmallConnect

VERBS = ["list", "status", "put", "pause", "resume", "restart", "delete"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_names_examples_and_exit_codes(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["connectors", verb, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert f"sparkmirror connectors {verb} " in said
    assert "exit codes:\n  0    done; status: everything runs\n  1    " in said


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["list", "surplus"],
        ["pause"],
        ["status", ""],
        ["restart"],
        ["put", "msc"],
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


def test_unusable_input_ends_with_2_before_a_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"name": "other"}')
    for file, said in (
        (other, "Invalid value other for configuration name: is not msc"),
        (tmp_path / "nowhere.json", "nowhere.json: No such file"),
    ):
        assert main(["connectors", "put", "msc", str(file), "--url", "http://127.0.0.1:1"]) == 2
        assert said in capsys.readouterr().err


def test_a_refused_connector_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect.put("b", {})
    assert connect.run("connectors", "delete", "a", "b") == 1
    assert connect.configs == {}
    said = capsys.readouterr()
    assert said.out == "b: deleted\n"
    assert said.err == "a: 404 Not Found: Connector a not found\n"


def test_keys_that_nothing_reads_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    file = tmp_path / "msc.json"
    file.write_text(
        '{"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "topcis": "orders"}'
    )
    assert connect.run("connectors", "put", "msc", file) == 0
    said = capsys.readouterr()
    assert said.out == "msc: created\n"
    assert said.err == "msc: topcis: nothing reads this key: did you mean topics?\n"
    file.write_text('{"connector.class": "a.Sink", "topcis": "orders"}')
    assert connect.run("connectors", "put", "sink", file) == 0
    assert capsys.readouterr().err == ""


def test_connectors_restart_pause_and_resume(capsys: pytest.CaptureFixture[str]) -> None:
    connect = SmallConnect()
    connect.put("msc", {})
    assert connect.run("connectors", "restart", "msc", "--include-tasks", "--only-failed") == 0
    assert connect.run("connectors", "pause", "msc") == 0
    assert connect.run("connectors", "resume", "msc") == 0
    assert [asked.path for asked in connect.http.asked] == [
        "/connectors/msc/restart?includeTasks=true&onlyFailed=true",
        "/connectors/msc/pause",
        "/connectors/msc/resume",
    ]
    said = ["msc: is going to restart", "msc: is going to pause", "msc: is going to run"]
    assert capsys.readouterr().out.splitlines() == said


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
