import json
from pathlib import Path

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters.cluster_state import ClusterSpec, ClusterState, NodeState


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARKMIRROR_CACHE", str(tmp_path))
    return tmp_path / "clusters"


def stopped_cluster(home: Path) -> Path:
    directory = home / "source"
    (directory / "broker-0").mkdir(parents=True)
    spec = ClusterSpec("source", settings={"num.partitions": "8"})
    ClusterState(spec, "an-id", (NodeState(9092, 9093),)).save(directory)
    return directory


def test_status_without_clusters_shows_how_to_start_some(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clusters", "status"]) == 0
    assert capsys.readouterr().out.endswith("sparkmirror clusters up\n")


def test_status_of_a_stopped_cluster(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = stopped_cluster(home)
    assert main(["clusters", "status"]) == 1
    header, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["CLUSTER", "BROKER", "STATE", "ADDRESS", "DATA", "LOG"]
    assert row[:4] == ["source", "0", "down", "127.0.0.1:9092"]
    assert row[-1] == f"{directory}/broker-0.log"


def test_status_as_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = stopped_cluster(home)
    assert main(["clusters", "status", "-o", "json"]) == 1
    broker = {
        "id": 0,
        "up": False,
        "address": "127.0.0.1:9092",
        "pid": None,
        "data_bytes": 0,
        "log": f"{directory}/broker-0.log",
    }
    assert json.loads(capsys.readouterr().out) == [
        {
            "name": "source",
            "bootstrap_servers": "127.0.0.1:9092",
            "settings": {"num.partitions": "8"},
            "brokers": [broker],
        }
    ]


def test_down_all_with_data(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = stopped_cluster(home)
    assert main(["clusters", "down", "--all", "--delete-data"]) == 0
    assert capsys.readouterr().out == "source is down, its data is deleted\n"
    assert not directory.exists()


@pytest.mark.parametrize(
    "arguments",
    [["up", "../elsewhere"], ["up", "a b"], ["up", "--brokers", "2"], ["up", "--set", "key"], ["sideways"]],
)
def test_wrong_usage(arguments: list[str], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["clusters", *arguments])
    assert caught.value.code == 2
