"""The compose files: as the specification has them, and what they say started as processes."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import yaml

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.package.compose_file import (
    ComposeFile,
    health_check,
    mounts,
    read_by_docker,
    schema_of_the_specification,
)
from tests.package.container_process import Container, ContainerProcess, running_container
from tests.support.broker_data import append, create_topic, numbered, topics
from tests.support.mirror import START_TIMEOUT_S
from tests.support.release_tools import release_tool
from tests.support.topic_reader import end_offsets
from tests.support.waiting import await_value

ROOT: Final = Path(__file__).parents[2]
OURS: Final = ROOT / "deploy" / "compose" / "compose.yaml"
CONNECT_CLUSTER: Final = Path(__file__).parent / "connect_cluster"
"""A user's file with two Connect nodes, its Prometheus and its kafka-ui, and what they mount."""
THEIRS: Final = CONNECT_CLUSTER / "docker-compose.yml"
IMAGE: Final = "sparkmirror:1.0.0"
SHOP: Final = ("orders", "payments", "page-views", "customers")
NODES: Final = ("kafka-connect-0", "kafka-connect-1")
CONNECTORS: Final = ("mm2-cpc-source-0", "mm2-hbc-source-0", "mm2-msc-source-0")


@pytest.mark.parametrize("file", [OURS, THEIRS], ids=lambda file: file.name)
def test_the_specification_has_the_file(file: Path) -> None:
    command = [
        release_tool("check-jsonschema"),
        "--schemafile",
        str(schema_of_the_specification()),
        str(file),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("file", "started"),
    [(OURS, ("shop", "mirror", "prometheus")), (THEIRS, (*NODES, "prometheus"))],
    ids=["ours", "theirs"],
)
def test_these_tests_read_a_file_as_docker_does(file: Path, started: tuple[str, ...]) -> None:
    ours, dockers = ComposeFile(file), read_by_docker(file)["services"]
    assert dockers.keys() == ours.content["services"].keys()
    for name in started:
        said, read = ours.container(name), dockers[name]
        command = read["command"]
        assert said.words == (shlex.split(command) if isinstance(command, str) else command)
        assert said.environment == read.get("environment", {})
        bound = {it["target"]: Path(it["source"]) for it in read.get("volumes", ()) if it["type"] == "bind"}
        assert {path: Path(os.path.normpath(str(at))) for path, at in said.mounts.items()} == bound


def test_what_our_file_names_is_there() -> None:
    ours = ComposeFile(OURS)
    services, volumes = ours.content["services"], ours.content["volumes"]
    for service in services.values():
        assert all((OURS.parent / source).exists() for source, _ in mounts(service))
        named = (volume.split(":")[0] for volume in service.get("volumes", ()))
        assert all(name.startswith(".") or name in volumes for name in named)
        assert service.get("depends_on", {}).keys() <= services.keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert ":latest" not in service["image"]
        assert ":" in service["image"]


def test_grafana_has_the_boards_and_their_source() -> None:
    ours = ComposeFile(OURS)
    grafana = ours.service("grafana")
    mounted = {target: OURS.parent / source for source, target in mounts(grafana)}
    (source,) = yaml.safe_load(mounted["/etc/grafana/provisioning/datasources/prometheus.yml"].read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load(mounted["/etc/grafana/provisioning/dashboards/sparkmirror.yml"].read_text())[
        "providers"
    ]
    boards = mounted[provider["options"]["path"]]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (boards / home.name).is_file()


class Api:
    """Requests for JSON."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **parameters: str) -> Any:
        """None where nothing answers yet."""
        try:
            query = f"?{urlencode(parameters)}" if parameters else ""
            with urlopen(f"http://{self._address}{path}{query}", timeout=10) as response:
                return json.load(response)
        except HTTPError as error:
            with error:
                return None
        except OSError:
            return None


@contextmanager
def running_prometheus(folder: Path, container: Container, places: Mapping[str, str]) -> Iterator[Api]:
    """The service `prometheus` of a file, with its command and what it mounts, at a free address."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("not run: needs prometheus")
    folder.mkdir()
    here = dict(places)
    for path, source in container.mounts.items():
        assert isinstance(source, Path)
        here[path] = str(folder / Path(path).name)
        files = (
            [(source, Path(here[path]))]
            if source.is_file()
            else [(file, Path(here[path]) / file.name) for file in source.iterdir()]
        )
        for file, copy in files:
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(replaced(file.read_text(), places))
    port = ReservedPort()
    address = f"{HOST}:{port.number}"
    own = [f"--web.listen-address={address}", f"--storage.tsdb.path={folder / 'data'}"]
    command = [program, *(replaced(word, here) for word in container.words), *own]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Api(address)
    finally:
        process.terminate()
        process.wait(30)
        port.release()


def replaced(text: str, places: Mapping[str, str]) -> str:
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, places[place])
    return text


def await_answered(prometheus: Api, query: str, *wanted: str) -> None:
    """Wait until the query has an answer, with just these values if some are wanted."""

    def is_answered() -> bool:
        answer = prometheus.get("/api/v1/query", query=query)
        values = {sample["value"][1] for sample in answer["data"]["result"]} if answer else set()
        return values == set(wanted) if wanted else bool(values)

    await_value(is_answered, START_TIMEOUT_S, lambda: query)


@pytest.fixture
def ports() -> Iterator["Ports"]:
    with ExitStack() as stack:
        yield Ports(stack)


class Ports:
    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def free(self) -> str:
        """An address of this machine, free until the test's end."""
        port = ReservedPort()
        self._stack.callback(port.release)
        return f"{HOST}:{port.number}"


def test_our_shop_is_mirrored_shown_and_verified(
    source_cluster: LocalCluster, target_cluster: LocalCluster, ports: Ports, tmp_path: Path
) -> None:
    ours = ComposeFile(OURS)
    at = ports.free()
    places = {
        "west:9092": source_cluster.bootstrap_servers,
        "east:9092": target_cluster.bootstrap_servers,
        "mirror:8080": at,
    }
    said = ours.container("mirror")
    mirror = Container([at if word == "8080" else word for word in said.words], said.environment, said.mounts)
    with ExitStack() as running:
        shop = running.enter_context(running_container(tmp_path / "shop", ours.container("shop"), places))
        shop.await_log("the shop is open")
        process = running.enter_context(running_container(tmp_path / "mirror", mirror, places))
        api = Api(at)
        await_value(lambda: api.get("/health"), START_TIMEOUT_S, process.log_text)
        copies = [f"west.{topic}" for topic in SHOP]
        await_copied(target_cluster, copies, 1000, process)
        await_copied(target_cluster, ["west.heartbeats"], 1, process)
        for name in ("west", "east"):
            check = ours.service(name)["healthcheck"]["test"]
            assert subprocess.run(replaced_check(check, places[f"{name}:9092"]), check=False).returncode == 0
        shop.stop()
        with running_prometheus(tmp_path / "prometheus", ours.container("prometheus"), places) as prometheus:
            assert_scraped(prometheus)
        process.stop()
    verify = Container(["verify", "/etc/sparkmirror/mm2.properties"], said.environment, said.mounts)
    with running_container(tmp_path / "verify", verify, places) as verifying:
        assert verifying.wait(START_TIMEOUT_S) == 0, verifying.log_text()


def await_copied(target: LocalCluster, copies: list[str], count: int, mirror: ContainerProcess) -> None:
    """Wait until the topics are there, with as many records or more."""

    def is_copied() -> bool:
        if not set(copies) <= topics(target).keys():
            return False
        return sum(end_offsets(target.bootstrap_servers, copies).values()) >= count

    await_value(is_copied, START_TIMEOUT_S, mirror.log_text)


def replaced_check(check: list[str], servers: str) -> list[str]:
    host, port = servers.split(":")
    return [word.replace("127.0.0.1/9092", f"{host}/{port}") for word in check[1:]]


def assert_scraped(prometheus: Api) -> None:
    """Our job is up, a query of our boards has an answer, and our rules are read."""
    await_answered(prometheus, 'up{job="mirror"}', "1")
    await_answered(prometheus, "sparkmirror_lag_records")
    groups = prometheus.get("/api/v1/rules")["data"]["groups"]
    assert {group["name"] for group in groups} == {"sparkmirror", "sparkmirror-freshness"}


def test_a_users_connect_nodes_need_another_image_and_nothing_else(
    source_cluster: LocalCluster, target_cluster: LocalCluster, ports: Ports, tmp_path: Path
) -> None:
    """From their `docker-compose.yml` to the last check of their instructions."""
    theirs = ComposeFile(THEIRS)
    create_topic(source_cluster.bootstrap_servers, "test", partitions=5)
    append(source_cluster, "test", numbered(100), partition=3)
    clusters = {
        "kafka-source-0:9092,kafka-source-1:9092": source_cluster.bootstrap_servers,
        "kafka-target-0:9092,kafka-target-1:9092": target_cluster.bootstrap_servers,
    }
    rest = {name: ports.free() for name in NODES}
    metrics = {name: ports.free() for name in NODES}
    with ExitStack() as running:
        nodes = {}
        for name in NODES:
            number = rest[name].rpartition(":")[2]
            # Their file has the default port, as Kafka no longer reads the old name by which it sets that.
            own = {"rest.port=8083": f"listeners=http://{rest[name]}", "=9404:": f"={metrics[name]}:"}
            nodes[name] = running.enter_context(
                running_container(tmp_path / name, theirs.container(name), {**clusters, **own})
            )
            await_health(theirs, name, number, nodes[name])
        deployed = deploy(tmp_path / "deploy", clusters, rest["kafka-connect-0"])
        assert "ERROR" not in deployed
        assert_seen_by_their_ui(rest, nodes["kafka-connect-0"])
        await_copied(target_cluster, ["test"], 100, nodes["kafka-connect-0"])
        assert topics(target_cluster)["test"] == 5
        scraped = {f"{name}:9404": metrics[name] for name in NODES}
        with running_prometheus(
            tmp_path / "prometheus", theirs.container("prometheus"), scraped
        ) as prometheus:
            await_answered(prometheus, 'up{job="kafka-connect-exporter"}', "1")
        for node in nodes.values():
            node.stop()


def await_health(file: ComposeFile, name: str, port: str, node: ContainerProcess) -> None:
    check = [word.replace("/8083", f"/{port}") for word in health_check(file.service(name))]
    await_value(
        lambda: subprocess.run(check, capture_output=True, check=False).returncode == 0,
        START_TIMEOUT_S,
        node.log_text,
    )


def deploy(folder: Path, clusters: Mapping[str, str], at: str) -> str:
    """Run their script, as they do."""
    if shutil.which("jq") is None or shutil.which("curl") is None:
        pytest.skip("not run: needs curl and jq")
    (folder / "mm2").mkdir(parents=True)
    for file in (CONNECT_CLUSTER / "mm2").iterdir():
        (folder / "mm2" / file.name).write_text(replaced(file.read_text(), clusters))
    script = folder / "mm2.sh"
    script.write_text((CONNECT_CLUSTER / "mm2.sh").read_text().replace("localhost:8083", at))
    ready = Request(f"http://{at}/connectors")
    await_value(lambda: answers(ready), START_TIMEOUT_S, lambda: at)
    command = ["bash", str(script), "deploy", "source-0"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def answers(request: Request) -> bool:
    try:
        with urlopen(request, timeout=10):
            return True
    except OSError:
        return False


def assert_seen_by_their_ui(rest: Mapping[str, str], node: ContainerProcess) -> None:
    """By the requests that kafka-ui sends to each address of its configuration."""
    config = yaml.safe_load((CONNECT_CLUSTER / "kafka-ui" / "config.yml").read_text())
    (connects,) = (it["kafkaConnect"] for it in config["kafka"]["clusters"] if "kafkaConnect" in it)
    for connect in connects:
        address = replaced(connect["address"], {f"http://{name}:8083": at for name, at in rest.items()})
        assert_lists_connectors(Api(address), node)


def assert_lists_connectors(api: Api, node: ContainerProcess) -> None:
    await_value(lambda: sorted(api.get("/connectors") or ()) == [*CONNECTORS], 60.0, node.log_text)

    def tasks() -> list[str]:
        status = api.get(f"/connectors/{CONNECTORS[-1]}/status") or {"tasks": []}
        return [task["state"] for task in status["tasks"]]

    await_value(lambda: tasks() == ["RUNNING", "RUNNING"], START_TIMEOUT_S, node.log_text)
    for name in CONNECTORS:
        assert api.get(f"/connectors/{name}/config")["name"] == name
        assert isinstance(api.get(f"/connectors/{name}/tasks"), list)
        assert api.get(f"/connectors/{name}")["type"] == "source"
    assert api.get("/connector-plugins")


def test_their_file_with_our_image_differs_by_the_name_of_the_image() -> None:
    text = THEIRS.read_text()
    before, found, behind = text.partition(
        "x-kafka-connect-common: &kafka-connect-common\n  image: 'bitnami/kafka:latest'\n"
    )
    assert found
    changed = f"{before}{found.replace('bitnami/kafka:latest', IMAGE)}{behind}"
    services = yaml.safe_load(changed)["services"]
    assert {name for name, it in services.items() if it["image"] == IMAGE} == set(NODES)
