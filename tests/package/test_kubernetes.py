"""The manifests: as the API takes them, within the restricted standard, and their containers started."""

import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.package.container_process import Container, ContainerProcess, running_container
from tests.package.kubernetes_manifests import (
    MANIFESTS,
    OVERLAYS,
    POD,
    Manifest,
    applied,
    container_of,
    one,
    pod_spec,
)
from tests.support.broker_data import append, create_topic, numbered
from tests.support.mirror import REPLICATION, START_TIMEOUT_S
from tests.support.release_tools import release_tool
from tests.support.topic_reader import end_offsets
from tests.support.waiting import await_value

VERSIONS: Final = ("1.30", "1.37")
"""The oldest and the newest version that the manifests are for."""
DEFINED_ELSEWHERE: Final = ("ServiceMonitor", "PrometheusRule")
"""Kinds of the Prometheus Operator."""
WORKLOADS: Final = ("Pod", "Deployment", "StatefulSet", "Job")
NO_SERVER: Final = "127.0.0.1:1"
SECRETS: Final = {
    "mirror-secrets": {"target.password": "s3cret"},
    "worker-secrets": {"target.password": "s3cret"},
}
ONE_BROKER: Final = "\n".join(f"{key} = {value}" for key, value in REPLICATION.items())


def single_files() -> list[Manifest]:
    return [
        yaml.safe_load(file.read_text()) for file in (POD, MANIFESTS / "overlays/executors/executor.yaml")
    ]


def everything() -> Iterator[Manifest]:
    yield from single_files()
    for overlay in OVERLAYS:
        yield from applied(overlay)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_api_takes_them(version: str, tmp_path: Path) -> None:
    files = []
    for number, manifest in enumerate(it for it in everything() if it["kind"] not in DEFINED_ELSEWHERE):
        files.append(tmp_path / f"{number}-{manifest['kind']}.yaml")
        files[-1].write_text(yaml.safe_dump(dict(manifest)))
    command = [release_tool("kubernetes-validate"), "--strict", "-k", version, *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_pods_are_within_the_restricted_standard() -> None:
    """The standard is `pod-security.kubernetes.io/enforce: restricted`, with a read-only file system."""
    for manifest in everything():
        if manifest["kind"] not in WORKLOADS:
            continue
        spec = pod_spec(manifest)
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert all(
            volume.keys() - {"name"} <= {"configMap", "secret", "emptyDir"} for volume in spec["volumes"]
        )
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_secrets_are_files_that_their_user_alone_reads() -> None:
    for manifest in everything():
        if manifest["kind"] in WORKLOADS:
            spec = pod_spec(manifest)
            secrets = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
            assert all(secret["defaultMode"] == 0o440 for secret in secrets)
            variables = [it for container in spec["containers"] for it in container.get("env", ())]
            assert all(
                "secretKeyRef" not in it.get("valueFrom", {}) and "value" not in it for it in variables
            )


def test_no_restart_depends_on_how_a_flow_is() -> None:
    served = [
        it for it in everything() if it["kind"] in ("Deployment", "StatefulSet") or it == single_files()[0]
    ]
    assert len(served) == 4
    for manifest in served:
        spec = pod_spec(manifest)
        (container,) = spec["containers"]
        (port,) = (it["name"] for it in container["ports"] if it["name"] in ("http", "rest"))
        assert (
            container["livenessProbe"]["tcpSocket"]
            == container["startupProbe"]["tcpSocket"]
            == {"port": port}
        )
        assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": port}
        assert spec["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize("overlay", ["overlays/dedicated", "overlays/workers", "overlays/executors"])
def test_services_budget_and_monitor_select_the_pods(overlay: str) -> None:
    manifests = applied(overlay)
    (pods,) = (it for it in manifests if it["kind"] in ("Deployment", "StatefulSet"))
    labels = pods["spec"]["template"]["metadata"]["labels"].items()
    ports = {port["name"] for port in pod_spec(pods)["containers"][0]["ports"]}
    services = [it for it in manifests if it["kind"] == "Service"]
    for service in services:
        assert service["spec"]["selector"].items() <= labels
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    budget = one(manifests, "PodDisruptionBudget")["spec"]
    assert budget["selector"]["matchLabels"].items() <= labels
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    for constraint in pod_spec(pods)["topologySpreadConstraints"]:
        assert constraint["labelSelector"]["matchLabels"].items() <= labels
    wanted = one(manifests, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    scraped = [it for it in services if wanted <= it["metadata"]["labels"].items()]
    headless = [it for it in scraped if it["metadata"]["labels"].get("sparkmirror/scraped") != "no"]
    assert [it["spec"]["clusterIP"] for it in headless] == ["None"]
    assert headless[0]["spec"]["publishNotReadyAddresses"] is True
    if pods["kind"] == "StatefulSet":
        assert pods["spec"]["serviceName"] == headless[0]["metadata"]["name"]


def test_the_prometheus_operator_takes_its_kinds() -> None:
    """The operator's definitions are in no package: only the fields are held that they are known to have."""
    monitor = one(applied("overlays/dedicated"), "ServiceMonitor")
    assert monitor["spec"].keys() == {"selector", "endpoints"}
    for endpoint in monitor["spec"]["endpoints"]:
        assert endpoint.keys() == {"port", "path", "interval", "relabelings"}
    assert {it["relabelings"][0]["replacement"] for it in monitor["spec"]["endpoints"]} == {"mirror"}
    rule = one(applied("overlays/dedicated"), "PrometheusRule")
    alerts = yaml.safe_load((MANIFESTS.parents[1] / "monitoring" / "alerts.yml").read_text())
    assert rule["spec"] == alerts


def test_verify_reads_the_file_of_the_mirror() -> None:
    mirror, verify = (one(applied(f"overlays/dedicated{it}"), "ConfigMap") for it in ("", "/verify"))
    assert mirror["metadata"] == verify["metadata"]
    assert mirror["data"] == verify["data"]


class Pod:
    """A pod that runs as a process, and what a kubelet asks it."""

    def __init__(self, spec: Manifest, port: int, process: ContainerProcess) -> None:
        (self._container,) = spec["containers"]
        self._port = port
        self.process = process

    def answers(self, probe: str) -> int | None:
        """The status of an `httpGet`, 0 for a port that opens, None for no answer."""
        check = self._container[probe]
        try:
            if "tcpSocket" in check:
                socket.create_connection((HOST, self._port), 5).close()
                return 0
            with urlopen(f"http://{HOST}:{self._port}{check['httpGet']['path']}", timeout=5) as response:
                return int(response.status)
        except HTTPError as error:
            with error:
                return error.code
        except OSError:
            return None

    def await_answer(self, probe: str, answer: int) -> None:
        await_value(lambda: self.answers(probe) == answer, START_TIMEOUT_S, self.process.log_text)


class Given(NamedTuple):
    """Everything that Kubernetes and its operators give a pod."""

    places: Mapping[str, str]
    secrets: Mapping[str, Mapping[str, str]] = SECRETS
    fields: Mapping[str, str] = {}


@contextmanager
def started_pod(folder: Path, manifests: Sequence[Manifest], given: Given) -> Iterator[Pod]:
    """Start the container of the only workload, with its port moved to a free one."""
    (workload,) = (it for it in manifests if it["kind"] in WORKLOADS)
    spec = pod_spec(workload)
    said = container_of(spec, manifests, given.secrets, given.fields)
    number = next((it["containerPort"] for it in spec["containers"][0].get("ports", ())), 0)
    port = ReservedPort()
    here = f"{HOST}:{port.number}"
    words = [here if word == str(number) else word for word in said.words]
    places = {**given.places, f"http://:{number}": f"http://{here}"}
    try:
        with running_container(folder, Container(words, said.environment, said.mounts), places) as process:
            yield Pod(spec, port.number, process)
    finally:
        port.release()


def changed(manifests: Sequence[Manifest], change: Callable[[str], str]) -> list[Manifest]:
    """The manifests with another text of each properties file."""
    return [
        {
            **it,
            "data": {
                name: change(text) if name.endswith(".properties") else text
                for name, text in it["data"].items()
            },
        }
        if it["kind"] == "ConfigMap"
        else it
        for it in manifests
    ]


def for_one_broker(text: str) -> str:
    """The file, for brokers without TLS and logins; it still names the secret."""
    return f"{text.replace('SASL_SSL', 'PLAINTEXT')}\n{ONE_BROKER}\n"


@pytest.fixture(scope="module")
def clusters(source_cluster: LocalCluster, target_cluster: LocalCluster) -> Mapping[str, str]:
    """The addresses of the manifests, and of the brokers that stand for them."""
    create_topic(source_cluster.bootstrap_servers, "orders.kubernetes", partitions=1)
    append(source_cluster, "orders.kubernetes", numbered(200))
    return {
        "onprem-kafka-bootstrap.kafka:9092": source_cluster.bootstrap_servers,
        "cloud.example.com:9093": target_cluster.bootstrap_servers,
    }


def copied(clusters: Mapping[str, str]) -> int:
    topic = "onprem.orders.kubernetes"
    return sum(end_offsets(clusters["cloud.example.com:9093"], [topic]).values())


def test_the_deployment_copies_is_verified_by_the_job_and_stops(
    clusters: Mapping[str, str], tmp_path: Path
) -> None:
    mirror = changed(applied("overlays/dedicated"), for_one_broker)
    with started_pod(tmp_path / "mirror", mirror, Given(clusters)) as pod:
        pod.await_answer("startupProbe", 0)
        pod.await_answer("readinessProbe", 200)
        await_value(lambda: copied(clusters) == 200, START_TIMEOUT_S, pod.process.log_text)
        pod.process.stop()
    job = changed(applied("overlays/dedicated/verify"), for_one_broker)
    with started_pod(tmp_path / "verify", job, Given(clusters)) as verify:
        assert verify.process.wait(START_TIMEOUT_S) == 0, verify.process.log_text()


def test_a_pod_whose_source_is_away_is_alive_and_not_ready(
    clusters: Mapping[str, str], tmp_path: Path
) -> None:
    places = {**clusters, "onprem-kafka-bootstrap.kafka:9092": NO_SERVER}
    mirror = changed(applied("overlays/dedicated"), for_one_broker)
    with started_pod(tmp_path / "mirror", mirror, Given(places)) as pod:
        pod.process.await_log("waiting for onprem")
        assert pod.answers("startupProbe") == pod.answers("livenessProbe") == 0
        assert pod.answers("readinessProbe") in (500, 503)
        pod.process.stop()


def test_the_pod_from_a_config_map_names_the_secret_that_lacks_its_key(tmp_path: Path) -> None:
    file = POD.with_name("kafka-to-es-mm2.properties")
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "mm2properties"},
        "data": {file.name: file.read_text()},
    }
    given = Given({}, {"es-apikey-target": {"other": "am_"}})
    with started_pod(tmp_path / "pod", [single_files()[0], config], given) as pod:
        assert pod.process.wait(START_TIMEOUT_S) == 2
        (line,) = pod.process.log_text().splitlines()
    assert "secrets" in line
    assert "binding" in line


def test_the_pod_from_a_config_map_copies(clusters: Mapping[str, str], tmp_path: Path) -> None:
    source, target = clusters.values()
    create_topic(source, "products", partitions=1)
    file = POD.with_name("kafka-to-es-mm2.properties")
    text = for_one_broker(file.read_text())
    config = {"kind": "ConfigMap", "metadata": {"name": "mm2properties"}, "data": {file.name: text}}
    brokers = "broker-0.example.com:9093, broker-1.example.com:9093, broker-2.example.com:9093"
    places = {"my-cluster-kafka-bootstrap:9092": source, brokers: target}
    given = Given(places, {"es-apikey-target": {"binding": "am_"}})
    with started_pod(tmp_path / "pod", [single_files()[0], config], given) as pod:
        pod.await_answer("readinessProbe", 200)
        assert "am_" not in pod.process.log_text()
        pod.process.stop()


@pytest.mark.parametrize("file", ["mm2.properties", "connect-distributed.properties"])
def test_a_missing_file_is_named(file: str, tmp_path: Path) -> None:
    overlay = "overlays/dedicated" if file == "mm2.properties" else "overlays/workers"
    empty = [{**it, "data": {}} if it["kind"] == "ConfigMap" else it for it in applied(overlay)]
    with started_pod(tmp_path / "pod", empty, Given({}, fields={"metadata.name": "worker-0"})) as pod:
        assert pod.process.wait(START_TIMEOUT_S) == 2
        (line,) = pod.process.log_text().splitlines()
    assert file in line


def one_group(text: str) -> str:
    """The workers' file with topics of one replica, and sessions as short as brokers allow."""
    storage = "\n".join(f"{it}.storage.replication.factor = 1" for it in ("config", "offset", "status"))
    return f"{for_one_broker(text)}{storage}\nsession.timeout.ms = 6000\nheartbeat.interval.ms = 1000\n"


def test_pods_of_the_stateful_set_are_known_by_their_names(
    clusters: Mapping[str, str], tmp_path: Path
) -> None:
    workers = changed(applied("overlays/workers"), one_group)
    with ExitStack() as running:
        pods = [
            running.enter_context(
                started_pod(tmp_path / name, workers, Given(clusters, fields={"metadata.name": name}))
            )
            for name in ("worker-0", "worker-1")
        ]
        for number, pod in enumerate(pods):
            pod.process.await_log(f"advertised as http://worker-{number}.workers:")
            pod.await_answer("readinessProbe", 200)
        for pod in pods:
            pod.process.stop()


def test_two_pods_with_one_name_are_named(clusters: Mapping[str, str], tmp_path: Path) -> None:
    def same(text: str) -> str:
        return one_group(text).replace("= mirrors", "= twins") + "rest.advertised.port = 8083\n"

    workers = changed(applied("overlays/workers"), same)
    given = Given(clusters, fields={"metadata.name": "worker-0"})
    with ExitStack() as running:
        pods = [running.enter_context(started_pod(tmp_path / it, workers, given)) for it in ("one", "two")]
        for pod in pods:
            line = pod.process.await_log("another worker of the group is advertised as")
            assert "http://worker-0.workers:8083" in line
            pod.process.stop()
