"""`sparkmirror connectors`, `deploy`, `undeploy` and `bin/mm2.sh` against a real Java Connect worker.

They need only its URL. Some tests run against a worker of sparkmirror too.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import create_topic
from tests.support.mirror import REPLICATION, START_TIMEOUT_S
from tests.support.waiting import await_value
from tests.system.connect_node import group_properties, running_nodes
from tests.system.consumer_groups import commit
from tests.system.java_mm2 import connect_worker, connector_class

MM2_SH: Final = Path(__file__).parents[2] / "bin" / "mm2.sh"
GROUP: Final = "commanded"
SECRET: Final = "s3cret"
CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.fixture(scope="module")
def java_url(target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Java Connect worker on the target cluster, without connectors."""
    stores = {
        f"{store}.storage.{key}": value
        for store in ("offset", "config", "status")
        for key, value in (("topic", f"{GROUP}-{store}s"), ("replication.factor", "1"))
    }
    properties = {
        "bootstrap.servers": target_cluster.bootstrap_servers,
        "group.id": GROUP,
        "offset.flush.interval.ms": "500",
        "task.shutdown.graceful.timeout.ms": "500",  # a checkpoint connector may not stop
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        **{f"{what}.converter": CONVERTER for what in ("key", "value", "header")},
        **stores,
    }
    with connect_worker(tmp_path_factory.mktemp(GROUP), properties) as worker:
        await_value(lambda: worker.ask("GET", "/connectors") is not None, START_TIMEOUT_S, worker.log_text)
        yield worker.url
        worker.stop()


@pytest.fixture(scope="module")
def our_url(target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a node of sparkmirror without connectors."""
    properties = group_properties(target_cluster, f"{GROUP}-ours")
    with running_nodes(tmp_path_factory.mktemp("ours"), properties, 1) as (node,):
        node.await_answers()
        yield node.url
        node.stop()


@pytest.fixture
def worker_url(request: pytest.FixtureRequest) -> str:
    """The URL of Java's worker unless a test is parametrized with another one."""
    url: str = request.getfixturevalue(getattr(request, "param", "java_url"))
    return url


both_workers = pytest.mark.parametrize("worker_url", ["java_url", "our_url"], indirect=True)


class Commands:
    """Runs `sparkmirror …` against the worker, in this process."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._url = url
        self._capsys = capsys

    def run(self, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """Run the command; returns stdout and stderr."""
        found = main([*map(str, words), "--url", self._url])
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out, said.err

    def json(self, *words: str | Path) -> Any:
        return json.loads(self.run(*words, "-o", "json")[0])

    def await_status(self, name: str, wanted: str) -> str:
        """Wait until `sparkmirror connectors status NAME` prints these words; returns all it prints."""

        def said() -> str:
            main(["connectors", "status", name, "--url", self._url])
            return " ".join(self._capsys.readouterr().out.split())

        def matching() -> str | None:
            text = said()
            return text if wanted in text else None

        return await_value(matching, START_TIMEOUT_S, said)


@pytest.fixture
def command(worker_url: str, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(worker_url, capsys)


@pytest.fixture
def heartbeats(source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path) -> Path:
    """The file of a heartbeat connector, with an unused secret."""
    return write(
        tmp_path / "heartbeats.json",
        {
            **connector("MirrorHeartbeatConnector", source_cluster, target_cluster),
            "emit.heartbeats.interval.seconds": 1,
            "unused.password": SECRET,
        },
    )


def connector(kind: str, source: LocalCluster, target: LocalCluster) -> dict[str, object]:
    """Return a connector configuration with JSON numbers and booleans."""
    return {
        "connector.class": connector_class(kind),
        "key.converter": CONVERTER,
        "value.converter": CONVERTER,
        "source.cluster.alias": "source-0",
        "target.cluster.alias": "target-0",
        "source.cluster.bootstrap.servers": source.bootstrap_servers,
        "target.cluster.bootstrap.servers": target.bootstrap_servers,
        **{key: value for key, value in REPLICATION.items() if not key.startswith("emit.")},
        "tasks.max": 2,
    }


def write(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content))
    return file


class Mm2Sh:
    """Runs `bin/mm2.sh ACTION source-0` with the files of a mirror."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._environment = {**os.environ, "CONF_FOLDER": str(folder), "TARGET_HOST": url}

    def run(self, action: str) -> tuple[int, str]:
        """Run the action; returns the exit code and the output."""
        done = subprocess.run(
            [str(MM2_SH), action, "source-0"],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=START_TIMEOUT_S,
        )
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def read_topic(source_cluster: LocalCluster) -> None:
    """A topic with a group that has committed offsets."""
    create_topic(source_cluster.bootstrap_servers, "commanded", partitions=2)
    commit(source_cluster, "commanded-group", "commanded", {0: 0})


@pytest.fixture
def mirror(
    worker_url: str, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> Mm2Sh:
    """The files of a mirror of that topic, so that each connector has a task."""
    own = {"topics": "commanded", "groups": "commanded-group", "sync.topic.acls.enabled": False}
    for short, kind in (("cpc", "Checkpoint"), ("hbc", "Heartbeat"), ("msc", "Source")):
        name = f"mm2-{short}-source-0"
        settings = connector(f"Mirror{kind}Connector", source_cluster, target_cluster)
        write(tmp_path / f"{name}.json", {"name": name, **settings, **own})
    return Mm2Sh(tmp_path, worker_url)


@both_workers
def test_a_connector_is_configured_paused_resumed_and_deleted(
    command: Commands, heartbeats: Path, tmp_path: Path
) -> None:
    assert command.run("connectors", "put", "life", heartbeats)[0] == "life: created\n"
    await_states(command, "RUNNING")
    assert ["life", "source", "MirrorHeartbeatConnector", "RUNNING", "1/1"] in rows(command, "list")
    assert SECRET not in "".join(command.run("connectors", "list", "-o", "json"))
    shown = command.json("connectors", "list")["life"]["info"]["config"]
    assert shown["unused.password"] == "[hidden]"
    _, err = command.run("connectors", "put", "life", write(tmp_path / "masked", shown), code=2)
    assert "is the placeholder of a masked secret" in err
    assert command.run("connectors", "put", "life", heartbeats)[0] == "life: configured\n"
    assert command.run("connectors", "pause", "life")[0] == "life: is going to pause\n"
    await_states(command, "PAUSED")
    out, err = command.run("connectors", "resume", "nobody", "life", code=1)
    assert out == "life: is going to run\n"
    assert err == "nobody: 404 Not Found: Unknown connector nobody\n"
    await_states(command, "RUNNING")
    out, _ = command.run("connectors", "restart", "life", "--include-tasks")
    assert out == "life: is going to restart\n"
    await_states(command, "RUNNING")
    assert command.run("connectors", "delete", "life")[0] == "life: deleted\n"
    command.await_status("life", "life does not exist, or has no status yet")


def await_states(command: Commands, state: str) -> None:
    """Wait for the state of the connector `life` and of its only task, on whatever worker."""
    worker = command.await_status("life", f"life {state} ").partition(f"life {state} ")[2].split()[0]
    command.await_status("life", f"life {state} {worker} life 0 {state} {worker}")


def rows(command: Commands, *words: str, code: int = 0) -> list[list[str]]:
    out, _ = command.run("connectors", *words, code=code)
    return [line.split() for line in out.splitlines()[1:]]


def test_a_put_reports_errors_of_the_worker(command: Commands, heartbeats: Path) -> None:
    settings = {**json.loads(heartbeats.read_text()), "tasks.max": 0}
    _, err = command.run("connectors", "put", "invalid", write(heartbeats, settings), code=1)
    assert "400 Bad Request: Connector configuration is invalid and contains the following 1 error(s)" in err


def test_the_status_has_the_cause_of_a_failure(command: Commands, heartbeats: Path) -> None:
    unusable = {"target.cluster.security.protocol": "SASL_PLAINTEXT"}
    settings = {**json.loads(heartbeats.read_text()), **unusable}
    command.run("connectors", "put", "failing", write(heartbeats, settings))
    out = command.await_status("failing", "failing connector: org.apache.kafka")
    assert "Could not find a 'KafkaClient' entry" in out
    command.run("connectors", "delete", "failing")


def test_names_may_contain_special_characters(command: Commands, heartbeats: Path) -> None:
    names = ["ü → ö", "+;=&,", "a?b#c", "[x] (y)"]
    for name in names:
        assert command.run("connectors", "put", name, heartbeats)[0] == f"{name}: created\n"
    out, _ = command.run("connectors", "delete", *names)
    assert out.splitlines() == [f"{name}: deleted" for name in names]


def test_java_refuses_names_with_a_slash(command: Commands) -> None:
    _, err = command.run("connectors", "status", "a/b", code=1)
    assert "400 Bad Request: Java's workers accept no names with /" in err


@both_workers
@pytest.mark.usefixtures("read_topic")
def test_mm2_sh_deploys_shows_states_and_undeploys(command: Commands, mirror: Mm2Sh) -> None:
    states = "".join(f'{part} connector: "RUNNING"\n' for part in ("Checkpoint", "Heartbeat", "Source"))
    deploying = "".join(f"Deploying {part} connector\n" for part in ("checkpoints", "heartbeats", "source"))
    undeployed = "".join(f"{part} connector undeployed\n" for part in ("Checkpoints", "Heartbeats", "Source"))
    assert mirror.run("deploy") == (0, f"Deploying cluster source-0\n{deploying}{states}")
    assert command.run("status", "source-0")[0] == states
    out, _ = command.run("redeploy", "source-0", "--dir", mirror.folder, "--no-wait")
    assert out == f"Redeploying cluster source-0\n{undeployed}{deploying}"
    assert command.run("undeploy", "source-0")[0] == f"Undeploying cluster source-0\n{undeployed}"
    assert command.run("status", "source-0", code=1)[0] == states.replace('"RUNNING"', "null")
