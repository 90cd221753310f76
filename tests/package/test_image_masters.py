"""Spark's masters: what was left out of Spark and Java is not missed by any of them.

A class that is missing ends a program with NoClassDefFoundError, in its output or in Spark's log.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.support.broker_data import append, create_topic, numbered
from tests.support.containers import Container, Engine, mounted, variables
from tests.support.image_mirrors import await_copied, mirror_file
from tests.support.kubernetes_api import pod_server

FILE: Final = "/etc/mirror/mm2.properties"
SPARK_LOG: Final = "/tmp/spark.log"
SPARK_CLASS: Final = "/opt/spark/bin/spark-class"
MISSING: Final = (
    "NoClassDefFoundError",
    "ClassNotFoundException",
    "NoSuchMethodError",
    "not found in module",
)
SECURE: Final = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "a secret of the test",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
YARN: Final = """\
<configuration>
<property><name>yarn.resourcemanager.address</name><value>127.0.0.1:1</value></property>
<property><name>yarn.resourcemanager.connect.max-wait.ms</name><value>1000</value></property>
<property><name>yarn.resourcemanager.connect.retry-interval.ms</name><value>500</value></property>
<property><name>ipc.client.connect.max.retries</name><value>1</value></property>
</configuration>
"""


def assert_complete(*texts: str) -> None:
    for text in texts:
        assert not [line for line in text.splitlines() if any(it in line for it in MISSING)], text


@pytest.fixture
def spark_cluster(image: Engine, tmp_path: Path) -> Iterator[tuple[str, list[Container]]]:
    """A standalone cluster of the image with authentication and encryption: its URL and its containers."""
    ports = [ReservedPort() for _ in range(3)]
    master, pages, worker_pages = (str(port.number) for port in ports)
    url = f"spark://{HOST}:{master}"
    conf = tmp_path / "spark-defaults.conf"
    conf.write_text("".join(f"{key} {value}\n" for key, value in SECURE.items()))
    options = [
        mounted(conf, "/etc/spark/spark-defaults.conf"),
        *variables({"SPARK_CONF_DIR": "/etc/spark", "SPARK_WORKER_DIR": "/tmp/work", "SPARK_LOCAL_IP": HOST}),
    ]
    of_master = ["--host", HOST, "--port", master, "--webui-port", pages]
    of_worker = ["--host", HOST, "--cores", "4", "--memory", "2g", "--webui-port", worker_pages, url]
    with ExitStack() as running:
        first = running.enter_context(
            image.started(
                tmp_path, SPARK_CLASS, "org.apache.spark.deploy.master.Master", *of_master, options=options
            )
        )
        first.await_log("I have been elected leader|New state: ALIVE|Started daemon")
        second = running.enter_context(
            image.started(
                tmp_path, SPARK_CLASS, "org.apache.spark.deploy.worker.Worker", *of_worker, options=options
            )
        )
        yield url, [first, second]
    for port in ports:
        port.release()


def test_a_standalone_cluster_with_encryption(
    image: Engine,
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
    spark_cluster: tuple[str, list[Container]],
    tmp_path: Path,
    port: int,
) -> None:
    topic = "image-standalone"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
    for partition in (0, 1):
        append(
            source_cluster, topic, numbered(100), partition=partition, settings={"compression.type": "snappy"}
        )
    url, containers = spark_cluster
    settings = {"spark.master": url, "spark.driver.host": HOST, **SECURE}
    file = mirror_file(tmp_path, source_cluster, target_cluster, topic, **settings)
    options = [mounted(file, FILE), *variables({"SPARKMIRROR_HTTP": f"{HOST}:{port}"})]
    with image.started(tmp_path, "run", FILE, "--log-file", SPARK_LOG, options=options) as mirror:
        await_copied(mirror, target_cluster, f"{topic}-a.{topic}", 200)
        assert "executors get their Python packages from /tmp/sparkmirror-10001/" in mirror.text()
        logs = mirror.run("cat", SPARK_LOG).stdout
        work = containers[1].run("bash", "-c", "cat /tmp/work/*/*/stderr").stdout
        assert "Started" in work or "INFO" in work or "WARN" in work, "the executors' logs"
        assert_complete(logs, work, *(it.text() for it in containers))
        assert mirror.stop() == 0, mirror.text()


def test_yarn_is_asked(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> None:
    """The classes are complete up to the first connection, which is refused."""
    hadoop = tmp_path / "yarn-site.xml"
    hadoop.write_text(YARN)
    settings = {"spark.master": "yarn", "spark.sparkmirror.archive": "none"}
    file = mirror_file(tmp_path, source_cluster, target_cluster, "image-yarn", **settings)
    options = [
        mounted(file, FILE),
        mounted(hadoop, "/etc/hadoop/yarn-site.xml"),
        *variables({"HADOOP_CONF_DIR": "/etc/hadoop", "SPARKMIRROR_HTTP": f"{HOST}:{port}"}),
    ]
    ended = image.run("run", FILE, "--log-file", "/dev/stdout", options=options)
    assert ended.returncode == 3, ended
    assert "Connection refused" in ended.stdout + ended.stderr, ended
    assert_complete(ended.stdout, ended.stderr)


def test_the_zip_for_executors_of_yarn_has_what_a_worker_imports(image: Engine) -> None:
    packed = "/opt/spark/python/lib/pyspark.zip"
    program = "import pyspark.daemon, pyspark.sql, pyspark.worker; print(pyspark.__file__)"
    path = variables({"PYTHONPATH": packed})
    imported = image.run("/opt/sparkmirror/bin/python", "-c", program, options=path)
    assert imported.stdout.strip() == f"{packed}/pyspark/__init__.py", imported


def test_executors_as_pods(
    image: Engine, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, port: int
) -> None:
    """Driver and executors of one image; the containers of the pods are started as Spark asks for them."""
    topic = "image-pods"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
    for partition in (0, 1):
        append(source_cluster, topic, numbered(100), partition=partition)
    with pod_server(image, tmp_path) as (url, pods):
        settings = {
            "spark.master": f"k8s://{url}",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.instances": "1",
            "spark.executor.cores": "4",
            "spark.kubernetes.container.image": "sparkmirror",
            "spark.kubernetes.namespace": "mirrors",
            "spark.sparkmirror.archive": "none",
            **SECURE,
        }
        file = mirror_file(tmp_path, source_cluster, target_cluster, topic, **settings)
        options = [mounted(file, FILE), *variables({"SPARKMIRROR_HTTP": f"{HOST}:{port}"})]
        with image.started(tmp_path, "run", FILE, "--log-file", SPARK_LOG, options=options) as mirror:
            await_copied(mirror, target_cluster, f"{topic}-a.{topic}", 200)
            (executor,) = pods.containers.values()
            logs = mirror.run("cat", SPARK_LOG).stdout
            assert_complete(logs, executor.text())
            assert mirror.stop() == 0, mirror.text()
            assert pods.pods() == [], "Spark deletes what it has created"
