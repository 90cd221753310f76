"""The image: built for real, and run with a read-only root, its own user and no capability."""

import json
import logging
import re
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.support.broker_data import append, create_topic, numbered
from tests.support.containers import ROOT, Engine, mounted, variables
from tests.support.image_mirrors import COPY_TIMEOUT_S, asked, await_copied, await_first, mirror_file
from tests.support.release_tools import release_tool
from tests.support.waiting import await_value

_log = logging.getLogger(__name__)

EXPORTER: Final = "/opt/jmx-exporter/jmx_prometheus_javaagent-0.19.0.jar"
RULES: Final = "/opt/jmx-exporter/rules.yml"
RULES_TEXT: Final = """\
lowercaseOutputName: true
cacheRules: true
rules:
  - pattern: <type=MirrorSourceConnector, target=(.+), topic=(.+), partition=(.+)><>record-count
    name: shop_mirrored_records_total
    type: COUNTER
    labels: { topic: "$2", partition: "$3" }
"""
BYTES_MAX: Final = 810_000_000


def test_the_dockerfile_is_clean() -> None:
    config = ROOT / ".hadolint.yaml"
    subprocess.run([release_tool("hadolint"), "--config", config, ROOT / "Dockerfile"], check=True)


def test_each_layer_is_accounted_for(image: Engine) -> None:
    layers = image.layers()
    for layer in layers:
        _log.info("%6.1f MB  %s", layer.bytes / 1e6, layer.made_by[:90])
    assert sum(layer.bytes for layer in layers) < BYTES_MAX
    assert len(layers) == 6, "base, system, Java, packages, sparkmirror, archive of classes"


def test_it_has_no_compiler_and_no_pip(image: Engine) -> None:
    programs = "pip pip3 gcc cc c++ make javac jlink curl wget apt-get"
    found = image.run("bash", "-c", f"for it in {programs}; do command -v $it; done")
    assert set(found.stdout.split()) <= {"/usr/bin/apt-get"}, "Debian's own alone"
    for module in ("pip", "ensurepip", "setuptools"):
        assert image.run("/opt/sparkmirror/bin/python", "-m", module).returncode == 1


def test_a_script_of_kafkas_mirrors_is_verified_and_ends_in_order(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> None:
    """The command that a pod from a ConfigMap and a container with the file at /home type."""
    topic = "image-orders"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
    for partition in (0, 1):
        append(source_cluster, topic, numbered(500), partition=partition)
    file = mounted(mirror_file(tmp_path, source_cluster, target_cluster, topic), "/home/mm2.properties")
    (tmp_path / "rules.yml").write_text(RULES_TEXT)
    metrics = ReservedPort()
    options = [
        file,
        mounted(tmp_path / "rules.yml", RULES),
        *variables(
            {
                "SPARKMIRROR_HTTP": f"{HOST}:{port}",
                "KAFKA_HEAP_OPTS": "-Xmx256m",
                "JAVA_TOOL_OPTIONS": "-Xlog:cds:file=/tmp/cds-%p.log",
                "KAFKA_OPTS": f"-javaagent:{EXPORTER}={HOST}:{metrics.number}:{RULES}",
            }
        ),
    ]
    began = time.monotonic()
    script = "/opt/kafka/bin/connect-mirror-maker.sh"
    with image.started(tmp_path, script, "/home/mm2.properties", options=options) as container:
        copied = f"{topic}-a.{topic}"
        await_first(container, target_cluster, copied)
        _log.info("%.1f s from the start of the container to the first record", time.monotonic() - began)
        await_copied(container, target_cluster, copied, 1000)
        assert container.await_health().startswith("200 ")
        assert "KAFKA_HEAP_OPTS: -Xmx256m has no effect here" in container.text()
        page = asked(f"http://{HOST}:{metrics.number}/metrics")
        for partition in (0, 1):
            labels = f'partition="{partition}",topic="{copied}"'
            assert re.search(rf"^shop_mirrored_records_total{{{labels}}} 500", page, re.MULTILINE), page
        (flow,) = json.loads(asked(f"http://{HOST}:{port}/mirror?flow={topic}-a-%3E{topic}-b"))["flows"]
        assert re.search(r"process 1 on .* \(container [0-9a-f]{12}\)", flow["process"]), flow
        classes = container.run("bash", "-c", "cat /tmp/cds-*.log").stdout
        assert "Mapped dynamic region" in classes, "from the archive"
        assert "mismatch" not in classes
        verified = container.run("sparkmirror", "verify", "/home/mm2.properties")
        assert verified.returncode == 0, verified
        assert container.stop() == 0, container.text()
        assert "SIGTERM: stopping in order" in container.text()
        assert "stopped" in container.text().splitlines()[-1]
    metrics.release()


WORKER_FILE: Final = "/opt/bitnami/kafka/config/connect-distributed.properties"


def worker_file(target: LocalCluster, group: str, port: int) -> Mapping[str, str]:
    """The file of a compose file's Connect nodes, with a port of this machine."""
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": target.bootstrap_servers,
        "group.id": group,
        "key.converter": json_converter,
        "value.converter": json_converter,
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "true",
        "internal.key.converter": json_converter,
        "internal.value.converter": json_converter,
        "offset.storage.topic": f"{group}-offsets",
        "offset.storage.replication.factor": "1",
        "config.storage.topic": f"{group}-configs",
        "config.storage.replication.factor": "1",
        "status.storage.topic": f"{group}-status",
        "status.storage.replication.factor": "1",
        "offset.flush.interval.ms": "10000",
        "listeners": f"http://{HOST}:{port}",
    }


def connector(source: LocalCluster, target: LocalCluster, topic: str) -> dict[str, object]:
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    return {
        "name": "mm2-msc-source-0",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "topics": topic,
        "sync.topic.acls.enabled": False,
        "sync.topic.configs.enabled": False,
        "key.converter": converter,
        "value.converter": converter,
        "source.cluster.alias": f"{topic}-a",
        "source.cluster.bootstrap.servers": source.bootstrap_servers,
        "target.cluster.alias": f"{topic}-b",
        "target.cluster.bootstrap.servers": target.bootstrap_servers,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "tasks.max": "2",
        "heartbeats.replication.enabled": False,
    }


def put(url: str, config: dict[str, object]) -> int:
    body = json.dumps(config).encode()
    request = urllib.request.Request(
        f"{url}/connectors/{config['name']}/config", body, {"Content-Type": "application/json"}, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(answer.status)


def test_a_compose_files_connect_node_runs_connectors(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> None:
    topic = "image-connect"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=5)
    append(source_cluster, topic, numbered(200), partition=-1)
    given = tmp_path / "connect-distributed.properties"
    given.write_text(javaproperties.dumps(worker_file(target_cluster, "image-compose", port)))
    (tmp_path / "rules.yml").write_text(RULES_TEXT)
    metrics = ReservedPort()
    agent = f"-javaagent:{EXPORTER}={HOST}:{metrics.number}:{RULES}"
    options = [
        mounted(given, WORKER_FILE),
        mounted(tmp_path / "rules.yml", RULES),
        *variables({"KAFKA_HEAP_OPTS": f"-Xmx256m -Xms128M {agent}"}),
    ]
    script = "/opt/bitnami/kafka/bin/connect-distributed.sh"
    with image.started(tmp_path, script, WORKER_FILE, options=options) as container:
        container.await_health()
        check = container.run("bash", "-c", f'printf "" > /dev/tcp/127.0.0.1/{port}; exit $?;')
        assert check.returncode == 0, "the health check of the compose file"
        assert put(f"http://{HOST}:{port}", connector(source_cluster, target_cluster, topic)) == 201
        await_copied(container, target_cluster, f"{topic}-a.{topic}", 200)
        await_value(
            lambda: "shop_mirrored_records_total{" in asked(f"http://{HOST}:{metrics.number}/metrics"),
            COPY_TIMEOUT_S,
            container.text,
        )
        assert container.stop() == 0, container.text()
    metrics.release()


@pytest.mark.parametrize("words", [(), ("start",), ("/etc/confluent/docker/run",)], ids=str)
def test_a_worker_starts_from_variables(
    image: Engine, target_cluster: LocalCluster, tmp_path: Path, port: int, words: tuple[str, ...]
) -> None:
    group = f"image-variables-{len(words)}"
    names = worker_file(target_cluster, group, port)
    given = {f"CONNECT_{key.upper().replace('.', '_')}": value for key, value in names.items()}
    with image.started(tmp_path, *words, options=variables(given)) as container:
        container.await_health()
        assert json.loads(asked(f"http://{HOST}:{port}/"))["version"]
        assert container.stop() == 0, container.text()
