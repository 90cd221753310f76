"""Containers of an unusual kind, and bad input: one line that names it, and the documented exit code."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.support.broker_data import append, create_topic, numbered
from tests.support.containers import Engine, mounted, variables
from tests.support.image_mirrors import await_copied, mirror_file

NAMELESS: Final = "4711:4711"
FILE: Final = "/etc/mirror/mm2.properties"


def last_line(ended: subprocess.CompletedProcess[str]) -> str:
    lines = ended.stderr.strip().splitlines()
    return lines[-1] if lines else ""


@pytest.fixture
def options(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> list[str]:
    file = mirror_file(tmp_path, source_cluster, target_cluster, "image-troubles")
    return [mounted(file, FILE), *variables({"SPARKMIRROR_HTTP": f"{HOST}:{port}"})]


def test_a_user_without_a_name_and_a_home_that_can_not_be_written(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> None:
    topic = "image-nameless"
    create_topic(source_cluster.bootstrap_servers, topic)
    append(source_cluster, topic, numbered(10))
    file = mounted(mirror_file(tmp_path, source_cluster, target_cluster, topic), FILE)
    given = variables({"SPARKMIRROR_HTTP": f"{HOST}:{port}", "HOME": "/nonexistent"})
    with image.started(
        tmp_path, "run", FILE, options=[file, "--passwd=false", *given], user=NAMELESS
    ) as container:
        await_copied(container, target_cluster, f"{topic}-a.{topic}", 10)
        assert container.run("id", "-un").returncode == 1
        assert container.stop() == 0, container.text()


def test_a_second_container_names_the_first(image: Engine, options: list[str], tmp_path: Path) -> None:
    """Both are process 1, with the host's name."""
    other = ReservedPort()
    with image.started(tmp_path, "run", FILE, options=options) as first:
        first.await_log("started in")
        with image.started(
            tmp_path, "run", FILE, "--http", f"{HOST}:{other.number}", options=options
        ) as second:
            line = second.await_log("stands by: process 1 on ")
            named = re.search(r"\(container ([0-9a-f]{12})\)", line)
            assert named, line
            own = first.run("grep", "/etc/hostname", "/proc/self/mountinfo").stdout
            assert named[1] in own
            assert second.stop() == 0
    other.release()


def test_the_reason_of_a_jvm_that_does_not_start_is_in_the_containers_log(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> None:
    options = {"spark.driver.extraJavaOptions": "-Xms1x"}
    file = mirror_file(tmp_path, source_cluster, target_cluster, "image-jvm", **options)
    given = [mounted(file, FILE), *variables({"SPARKMIRROR_HTTP": f"{HOST}:{port}"})]
    ended = image.run("run", FILE, options=given)
    assert ended.returncode == 3, ended.stderr
    assert "Spark did not start: its JVM ended: Invalid initial heap size: -Xms1x" in ended.stderr


def test_no_folder_that_can_be_written(image: Engine, options: list[str]) -> None:
    ended = image.run("run", FILE, options=[*options, "--tmpfs=/tmp:ro"])
    assert ended.returncode == 2
    assert last_line(ended).endswith("mount a tmpfs or a volume at /tmp")


def test_a_folder_that_is_full(image: Engine, options: list[str]) -> None:
    ended = image.run("run", FILE, options=[*options, "--tmpfs=/tmp:rw,mode=1777,size=4k"])
    assert ended.returncode == 3
    assert "Spark did not start: [Errno 28] No space left on device" in ended.stderr


def test_a_file_that_is_not_mounted(image: Engine) -> None:
    ended = image.run("/opt/kafka/bin/connect-mirror-maker.sh", "/home/mm2.properties")
    assert ended.returncode == 2
    assert last_line(ended).endswith("/home/mm2.properties: No such file or directory")


def test_a_secret_that_is_not_mounted(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    secret = {
        "image-secret-b.sasl.jaas.config": "${file:/run/secrets/target.properties:jaas}",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    file = mirror_file(tmp_path, source_cluster, target_cluster, "image-secret", **secret)
    ended = image.run("run", FILE, options=[mounted(file, FILE)])
    assert ended.returncode == 2
    assert "/run/secrets/target.properties" in last_line(ended)


def test_rules_that_can_not_be_read(image: Engine, options: list[str]) -> None:
    agent = "-javaagent:/opt/jmx_prometheus_javaagent.jar=9404:/opt/rules.yml"
    ended = image.run("run", FILE, options=[*options, *variables({"KAFKA_OPTS": agent})])
    assert ended.returncode == 2
    assert "/opt/rules.yml" in last_line(ended)


def test_a_port_in_use(image: Engine, options: list[str], target_cluster: LocalCluster) -> None:
    taken = target_cluster.bootstrap_servers.rpartition(":")[2]
    ended = image.run("run", FILE, "--http", f"{HOST}:{taken}", options=options)
    assert ended.returncode == 3
    assert f"pages can't be served at {HOST}, port {taken}" in last_line(ended)


def test_variables_that_contradict_each_other(image: Engine) -> None:
    ended = image.run("start", options=variables({"CONNECT_GROUP_ID": "a", "GROUP_ID": "b"}))
    assert ended.returncode == 2
    assert last_line(ended) == (
        "sparkmirror: CONNECT_GROUP_ID and GROUP_ID: give group.id different values; set one of them"
    )


def test_other_programs_and_ours(image: Engine) -> None:
    assert image.run("bash", "-c", "exit 7").returncode == 7
    assert image.run("nothing-like-that").returncode == 127
    assert image.run("--version").stdout.startswith("sparkmirror ")
    assert image.run().returncode == 2, "an overview"
