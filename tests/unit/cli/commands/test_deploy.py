import json
from pathlib import Path

import pytest

from sparkmirror.cli.main import main
from tests.unit.cli.small_connect import SmallConnect

CLASSES = {"cpc": "Checkpoint", "hbc": "Heartbeat", "msc": "Source"}
NAMES = [f"mm2-{short}-source-0" for short in CLASSES]
STATES = """\
Checkpoint connector: "RUNNING"
Heartbeat connector: "RUNNING"
Source connector: "RUNNING"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for short, kind in CLASSES.items():
        config = {
            "name": f"mm2-{short}-source-0",
            "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
            "source.cluster.alias": "source-0",
            "sync.topic.acls.enabled": False,
        }
        (tmp_path / f"mm2-{short}-source-0.json").write_text(json.dumps(config))
    return tmp_path


@pytest.fixture
def connect() -> SmallConnect:
    return SmallConnect()


def test_deploy_configures_three_connectors_and_prints_what_mm2_sh_prints(
    folder: Path, connect: SmallConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    assert connect.run("deploy", "source-0", "--dir", folder) == 0
    assert capsys.readouterr().out == (
        "Deploying cluster source-0\nDeploying checkpoints connector\nDeploying heartbeats connector\n"
        "Deploying source connector\n" + STATES
    )
    assert connect.changes() == [f"PUT /connectors/{name}/config" for name in NAMES]
    assert connect.configs[NAMES[2]]["sync.topic.acls.enabled"] == "false"


def test_a_running_connector_is_not_changed_and_a_changed_file_is_reported(
    folder: Path, connect: SmallConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    connect.run("deploy", "source-0", "--dir", folder)
    done = connect.changes()
    connect.configs[NAMES[1]]["emit.heartbeats.interval.seconds"] = "5"
    capsys.readouterr()
    assert connect.run("deploy", "source-0", "--dir", folder) == 0
    said = capsys.readouterr()
    assert "Heartbeat connector already deployed\nSource connector already deployed\n" in said.out
    assert (
        said.err
        == f"{NAMES[1]}: runs with other settings than {folder}/{NAMES[1]}.json; redeploy applies them\n"
    )
    assert connect.changes() == done


def test_two_policies_in_the_files_are_told_with_their_effect_on_groups(
    folder: Path, connect: SmallConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / f"{NAMES[2]}.json"
    identity = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    file.write_text(json.dumps({**json.loads(file.read_text()), **identity}))
    assert connect.run("deploy", "source-0", "--dir", folder, "--no-wait") == 0
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"{NAMES[0]}: source-0->target: replication.policy.class is ")
    assert told.endswith(
        "groups get no offsets: the copy of orders is orders, and they are translated to source-0.orders"
    )


def test_a_failed_or_refused_connector_does_not_stop_the_others_and_ends_with_1(
    folder: Path, connect: SmallConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    connect.refused = {NAMES[0]}
    assert connect.run("deploy", "source-0", "--dir", folder, "--no-wait") == 1
    said = capsys.readouterr()
    assert (
        "ERROR: Failed to deploy checkpoints connector: 400 Bad Request: Connector configuration is invalid"
        in said.err
    )
    assert set(connect.configs) == set(NAMES[1:])
    connect.states[NAMES[2]] = "FAILED"
    assert connect.run("status", "source-0") == 1
    said = capsys.readouterr()
    assert said.out == (
        'Checkpoint connector: null\nHeartbeat connector: "RUNNING"\nSource connector: "FAILED"\n'
    )
    assert "it broke; Caused by: java.io.IOException: no disk" in said.err


def test_waiting_ends_at_a_paused_connector(
    folder: Path, connect: SmallConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    connect.run("deploy", "source-0", "--dir", folder)
    connect.states[NAMES[0]] = "PAUSED"
    assert connect.run("deploy", "source-0", "--dir", folder) == 1
    assert f"{NAMES[0]}: the connector is PAUSED, task 0 is PAUSED" in capsys.readouterr().err


def test_redeploy_removes_and_configures_and_undeploy_accepts_missing_connectors(
    folder: Path, connect: SmallConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    connect.run("deploy", "source-0", "--dir", folder)
    del connect.configs[NAMES[1]]
    capsys.readouterr()
    assert connect.run("redeploy", "source-0", "--dir", folder) == 0
    assert capsys.readouterr().out == (
        "Redeploying cluster source-0\nCheckpoints connector undeployed\n"
        "WARN: heartbeats connector not found\nHeartbeats connector undeployed\n"
        "Source connector undeployed\nDeploying checkpoints connector\nDeploying heartbeats connector\n"
        "Deploying source connector\n" + STATES
    )
    assert connect.run("undeploy", "source-0") == 0
    assert connect.configs == {}


def test_files_are_checked_before_any_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nobody = ["--url", "http://127.0.0.1:1"]
    (folder / f"{NAMES[2]}.json").write_text('{"name": "another", "connector.class": "x"}')
    assert main(["redeploy", "source-0", "--dir", str(folder), *nobody]) == 2
    assert f"{NAMES[2]}.json: is of another, not of {NAMES[2]}" in capsys.readouterr().err
    for name in NAMES[:2]:
        (folder / f"{name}.json").unlink()
    assert main(["deploy", "source-0", "--dir", str(folder), *nobody]) == 2
    assert capsys.readouterr().err == (
        f"sparkmirror deploy: Checkpoints conf is missing. Create file {folder}/{NAMES[0]}.json\n"
        f"Heartbeat conf is missing. Create file {folder}/{NAMES[1]}.json\n"
    )


def test_an_unreachable_worker_ends_with_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "source-0", "--url", "127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("sparkmirror status: http://127.0.0.1:1: no server responds; ")
