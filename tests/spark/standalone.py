"""Starts a Spark standalone cluster on this machine: a master and workers, each in its own JVM."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import javaproperties
import psutil
import pyspark

from sparkmirror.clusters.processes import start_process
from sparkmirror.java.find_java import find_java
from tests.support.waiting import await_value, patience

_HOME: Final = Path(pyspark.__file__).parent
_DEPLOY: Final = "org.apache.spark.deploy"
_JVM: Final = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PORTS: Final = ("--port", "0", "--webui-port", "0")
_TIMEOUT_S: Final = 60.0


class SparkNode:
    """A master or a worker at 127.0.0.`host`, which ends with this process."""

    def __init__(self, program: str, log: Path, host: int, *arguments: str) -> None:
        self._log = log
        java = [find_java().executable, *_JVM, "-cp", f"{_HOME / 'jars'}/*", f"{_DEPLOY}.{program}"]
        step = ["env", *_environment(), *java, "--host", f"127.0.0.{host}", *_PORTS, *arguments]
        self._process = start_process([step], log, outlives_us=False)

    def await_log(self, pattern: str) -> str:
        """Wait for a log line that matches; returns the pattern's group."""

        def found() -> str | None:
            assert self._process.is_alive(), self._log.read_text()
            match = re.search(pattern, self._log.read_text())
            return match and match[1]

        return await_value(found, _TIMEOUT_S, self._log.read_text)

    def processes(self) -> list[psutil.Process]:
        """List the process with its executors, Python daemons and their forks; none after its end."""
        try:
            node = psutil.Process(self._process.pid)
            return [node, *node.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def die(self) -> None:
        """Kill the node with all its processes, as when a machine is lost."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):  # children may end with their parents
                process.kill()
        self.close()

    def close(self) -> None:
        self._process.kill()


class SparkCluster:
    """A master and its workers; `url` is the value of `--master`."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        file = folder / "spark.conf"
        file.write_text(javaproperties.dumps(dict(settings)), encoding="ascii")
        self._configured = ("--properties-file", str(file))
        self._master = SparkNode("master.Master", folder / "master.log", 1, *self._configured)
        self.workers: list[SparkNode] = []
        self.url = self._master.await_log(r"Starting Spark master at (\S+)")

    def add_worker(self, cores: int) -> SparkNode:
        """Start a worker, which has a host of its own, as speculative attempts run on other hosts only."""
        number = len(self.workers) + 1
        folder = self._folder / f"worker{number}"
        arguments = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(folder))
        worker = SparkNode(
            "worker.Worker", folder.with_suffix(".log"), number, *self._configured, *arguments, self.url
        )
        self.workers.append(worker)
        return worker

    def processes(self) -> list[psutil.Process]:
        """List the processes of all nodes, with their executors and Pythons."""
        return [process for node in [*self.workers, self._master] for process in node.processes()]

    def close(self) -> None:
        for node in [*self.workers, self._master]:
            node.close()


@contextmanager
def standalone_cluster(
    folder: Path, workers: int, cores: int, settings: Mapping[str, str] | None = None
) -> Iterator[SparkCluster]:
    """Start a master and workers with this number of cores each, which end with all their processes.

    `settings` are those of each node's Spark.
    """
    cluster = SparkCluster(folder, settings or {})
    try:
        for worker in [cluster.add_worker(cores) for _ in range(workers)]:
            worker.await_log("(Successfully registered)")
        yield cluster
    finally:
        processes = [process for worker in cluster.workers for process in worker.processes()]
        cluster.close()
        _, left = psutil.wait_procs(processes, timeout=10 * patience())
    assert not left, f"outlived their Spark worker: {left}"


def _environment() -> list[str]:
    """Return the environment variables that Spark's start scripts set."""
    (core,) = (_HOME / "jars").glob("spark-core_*.jar")
    scala = core.name.split("_")[1].split("-")[0]
    return [f"SPARK_HOME={_HOME}", f"SPARK_SCALA_VERSION={scala}", "SPARK_LOCAL_IP=127.0.0.1"]
