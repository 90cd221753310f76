"""`sparkmirror connectors`, `deploy`, `undeploy` and `bin/mm2.sh` against a real Java Connect worker.

They need only its URL. Some tests run against a worker of sparkmirror too.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Queue
from typing import IO, Any, Final

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import create_topic
from tests.support.mirror import COMMAND, REPLICATION, START_TIMEOUT_S
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

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str], *, is_java: bool) -> None:
        self._url = url
        self._capsys = capsys
        self._is_java = is_java

    def run(self, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """Run the command; returns stdout and stderr."""
        found = main([*map(str, words), "--url", self._url])
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out, said.err

    def json(self, *words: str | Path) -> Any:
        return json.loads(self.run(*words, "-o", "json")[0])

    def await_offsets(self, offsets: dict[str, Any]) -> None:
        """Wait for these offsets. Java's worker shows only partitions that its reader has reached."""
        show = partial(self.json, "connectors", "offsets", "show", "life")
        if self._is_java:
            await_value(lambda: show() == offsets, START_TIMEOUT_S, lambda: str(show()))
        assert show() == offsets


@pytest.fixture
def command(worker_url: str, java_url: str, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(worker_url, capsys, is_java=worker_url == java_url)


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
def test_a_connector_is_created_paused_resumed_and_deleted(
    command: Commands, heartbeats: Path, tmp_path: Path
) -> None:
    out, _ = command.run("connectors", "create", heartbeats, "name=life", "--wait")
    assert out == "life: created\nlife: RUNNING, 1 task\n"
    _, err = command.run("connectors", "create", heartbeats, "name=life", code=1)
    assert err == "sparkmirror connectors create: 409 Conflict: Connector life already exists\n"
    assert ["life", "source", "MirrorHeartbeatConnector", "RUNNING", "1/1"] in rows(command, "list")
    out, _ = command.run("connectors", "pause", "life", "--wait")
    assert out == "life: is going to pause\nlife: PAUSED, 1 task\n"
    assert [row[:-1] for row in rows(command, "status", "life", code=1)] == [
        ["life", "PAUSED"],
        ["life", "0", "PAUSED"],
    ]
    out, err = command.run("connectors", "resume", "nobody", "life", code=1)
    assert out == "life: is going to run\n"
    assert err == "nobody: 404 Not Found: Unknown connector nobody\n"
    out, _ = command.run("connectors", "restart", "life", "--include-tasks", "--wait")
    assert out == "life: is going to restart\nlife: RUNNING, 1 task\n"
    await_value(lambda: rows(command, "topics", "life") == [["life", "heartbeats"]], START_TIMEOUT_S, str)
    change_offsets(command, tmp_path)
    command.run("connectors", "delete", "life", "--wait")
    out, _ = command.run("connectors", "status", "life", code=1)
    assert out.endswith("life does not exist, or has no status yet\n")


def rows(command: Commands, *words: str, code: int = 0) -> list[list[str]]:
    out, _ = command.run("connectors", *words, code=code)
    return [line.split() for line in out.splitlines()[1:]]


def change_offsets(command: Commands, folder: Path) -> None:
    _, err = command.run("connectors", "offsets", "reset", "life", "--yes", code=1)
    assert "life is RUNNING, and its offsets can be changed only while it is STOPPED" in err
    assert command.run("connectors", "stop", "life", "--wait")[0].endswith("life: STOPPED\n")
    command.run("connectors", "offsets", "reset", "life", "--yes")
    command.await_offsets({"offsets": []})
    partition = {"sourceClusterAlias": "source-0", "targetClusterAlias": "target-0"}
    offsets = {"offsets": [{"partition": partition, "offset": {"offset": 0}}]}
    out, _ = command.run("connectors", "offsets", "alter", "life", write(folder / "offsets", offsets))
    assert out == "life: The offsets for this connector have been altered successfully\n"
    command.await_offsets(offsets)


def test_config_can_be_put_back_and_secrets_stay_hidden(
    command: Commands, heartbeats: Path, tmp_path: Path
) -> None:
    out, _ = command.run("connectors", "put", "settings", heartbeats)
    assert out == "settings: created\n"
    config = command.json("connectors", "config", "settings")
    assert config["unused.password"] == "[hidden]"
    assert (config["tasks.max"], config["name"]) == ("2", "settings")
    _, err = command.run("connectors", "put", "settings", write(tmp_path / "masked", config), code=2)
    assert "is the placeholder of a secret" in err
    shown = command.json("connectors", "config", "settings", "--show-secrets")
    assert shown["unused.password"] == SECRET
    out, _ = command.run("connectors", "put", "settings", write(tmp_path / "shown", shown), "tasks.max=3")
    assert out == "settings: configured\n"
    out, _ = command.run("connectors", "patch", "settings", "emit.heartbeats.interval.seconds=2")
    assert out == "settings: configured\n"
    command.run("connectors", "patch", "settings", "--remove", "value.converter")
    changed = command.json("connectors", "config", "settings", "--show-secrets")
    del shown["value.converter"]
    assert changed == {**shown, "tasks.max": "3", "emit.heartbeats.interval.seconds": "2"}
    for words in (["tasks", "settings", "--configs"], ["list", "-o", "yaml"], ["validate", str(heartbeats)]):
        said = "".join(command.run("connectors", *words))
        assert SECRET not in said
    command.run("connectors", "delete", "settings")


def test_validate_reports_errors_of_the_worker(command: Commands, heartbeats: Path) -> None:
    out, _ = command.run("connectors", "validate", heartbeats)
    assert out.endswith("MirrorHeartbeatConnector: no errors\n")
    out, _ = command.run("connectors", "validate", heartbeats, "tasks.max=0", code=1)
    assert out.splitlines()[1].startswith("tasks.max  Invalid value 0 for configuration tasks.max")
    _, err = command.run("connectors", "put", "invalid", heartbeats, "tasks.max=0", code=1)
    assert "400 Bad Request: Connector configuration is invalid and contains the following 1 error(s)" in err


def test_wait_ends_when_the_connector_fails(command: Commands, heartbeats: Path) -> None:
    unusable = "target.cluster.security.protocol=SASL_PLAINTEXT"
    _, err = command.run("connectors", "put", "failing", heartbeats, unusable, "--wait", code=1)
    assert "\nfailing: the connector is FAILED\nfailing: org.apache.kafka" in err
    assert "Could not find a 'KafkaClient' entry" in err
    out, _ = command.run("connectors", "status", code=1)
    assert "failing connector: org.apache.kafka" in out
    command.run("connectors", "delete", "failing")


def test_names_may_contain_special_characters(command: Commands, heartbeats: Path) -> None:
    names = ["ü → ö", "+;=&,", "a?b#c", "[x] (y)"]
    for name in names:
        command.run("connectors", "create", heartbeats, f"name={name}", "--state", "stopped")
    out, _ = command.run("connectors", "stop", *names, "--wait")
    assert out.splitlines()[-4:] == [f"{name}: STOPPED" for name in names]
    assert command.json("connectors", "config", names[0])["name"] == names[0]
    command.run("connectors", "delete", *names)


def test_java_refuses_names_with_a_slash(command: Commands) -> None:
    _, err = command.run("connectors", "config", "a/b", code=1)
    assert "400 Bad Request: Java's workers accept no names with /" in err


def test_plugins_and_loggers_are_shown_and_levels_set(command: Commands) -> None:
    plugins = {plugin["class"] for plugin in command.json("connectors", "plugins")}
    assert connector_class("MirrorSourceConnector") in plugins
    out, _ = command.run("connectors", "plugins", "MirrorSourceConnector")
    assert any(line.split()[:3] == ["topics", "LIST", ".*"] for line in out.splitlines())
    command.run("connectors", "loggers", "commanded.logger", "warn")
    assert command.json("connectors", "loggers", "commanded.logger")["level"] == "WARN"
    _, err = command.run("connectors", "loggers", "root", "loud", code=1)
    assert err.startswith("sparkmirror connectors loggers: 404 Not Found: ")


def test_watch_prints_changes_and_ends_with_the_last_state(
    command: Commands, heartbeats: Path, worker_url: str
) -> None:
    command.run("connectors", "put", "watched", heartbeats, "--wait")
    watching = [COMMAND, "connectors", "status", "watched", "--watch", "--every", "1", "--url", worker_url]
    with running(watching) as (process, lines):
        await_lines(lines, {("watched", "RUNNING"), ("watched", "0", "RUNNING")})
        command.run("connectors", "pause", "watched")
        await_lines(lines, {("watched", "PAUSED"), ("watched", "0", "PAUSED")})
        process.send_signal(signal.SIGINT)
        assert process.wait(START_TIMEOUT_S) == 1
    command.run("connectors", "delete", "watched")


def await_lines(lines: "Queue[str]", wanted: set[tuple[str, ...]]) -> None:
    """Wait for each of these lines, without time and worker."""
    while wanted:
        wanted = wanted - {tuple(lines.get(timeout=START_TIMEOUT_S).split()[1:-1])}


@contextmanager
def running(command: list[str]) -> Iterator[tuple["subprocess.Popen[str]", "Queue[str]"]]:
    """Run the command; yields the process and the lines that it prints."""
    lines: Queue[str] = Queue()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        reader = threading.Thread(target=_read, args=(process.stdout, lines))
        reader.start()
        try:
            yield process, lines
        finally:
            process.kill()
            reader.join()


def _read(stream: IO[str], lines: "Queue[str]") -> None:
    for line in stream:
        lines.put(line)


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
