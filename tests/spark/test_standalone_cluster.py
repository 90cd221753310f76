"""A mirror on a Spark cluster whose machines have a bare Python, and one of which dies.

One mirror of two flows, each of which wants more tasks than its half of the cluster's slots.
"""

import re
import subprocess
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from sparkmirror.clusters import LocalCluster
from tests.spark.standalone import SparkCluster, SparkNode, standalone_cluster
from tests.support.broker_data import create_topic, end_offsets
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.traffic import flowing
from tests.support.waiting import await_value

FLOWS: Final = {"red": "B", "blue": "E"}
"""Source aliases and targets, of one and the same two clusters."""
PARTITIONS: Final = 4
TASKS_MAX: Final = 4
WORKERS: Final = 2
CORES: Final = 2
RATE: Final = 100
WAIT_S: Final = 120.0


def topic(alias: str) -> str:
    return f"{alias}.standalone"


@dataclass(frozen=True, slots=True)
class Scene:
    source: LocalCluster
    target: LocalCluster
    spark: SparkCluster
    mirror: Mirror
    python: Path

    def await_tasks(self, tasks: int) -> None:
        """Of both flows, as the last copy job has them."""

        def are_dealt() -> bool:
            said = self.mirror.log_text()
            last = {
                alias: re.findall(rf"\[{alias}->.* partitions in (\d) tasks", said)[-1:] for alias in FLOWS
            }
            return all(found == [str(tasks)] for found in last.values())

        await_value(are_dealt, WAIT_S, self.mirror.log_text)

    def await_more_records(self) -> None:
        """Every partition of both flows gets on from here."""
        remotes = [f"{alias}.{topic(alias)}" for alias in FLOWS]
        before = end_offsets(self.target, remotes)

        def have_got_on() -> bool:
            return all(end > before[at] for at, end in end_offsets(self.target, remotes).items())

        await_value(have_got_on, WAIT_S, self.mirror.log_text)

    def pythons(self, worker: SparkNode) -> list[psutil.Process]:
        """The Python daemons and their forks on a Spark worker."""
        return [process for process in worker.family() if "sparkmirror.copy.worker_daemon" in _words(process)]


@pytest.fixture(scope="module")
def scene(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("standalone")
    venv.create(folder / "bare", with_pip=False)
    python = folder / "bare" / "bin" / "python"
    for alias in FLOWS:
        create_topic(source_cluster.bootstrap_servers, topic(alias), partitions=PARTITIONS)
    with standalone_cluster(folder, WORKERS, CORES) as spark:
        told = properties(source_cluster, target_cluster, python)
        with running_mirror(folder / "mirror", told, "--master", spark.url) as mirror:
            yield Scene(source_cluster, target_cluster, spark, mirror, python)


def properties(source: LocalCluster, target: LocalCluster, python: Path) -> dict[str, str]:
    told = {
        "clusters": "red, blue, B, E",
        "heartbeats.replication.enabled": "false",
        "tasks.max": str(TASKS_MAX),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": str(python),
    }
    for alias, into in FLOWS.items():
        told[f"{alias}.bootstrap.servers"] = source.bootstrap_servers
        told[f"{into}.bootstrap.servers"] = target.bootstrap_servers
        told[f"{alias}->{into}.enabled"] = "true"
        told[f"{alias}->{into}.topics"] = topic(alias)
    return told


def test_tasks_of_a_lost_machine_continue_elsewhere(scene: Scene) -> None:
    with ExitStack() as flows:
        for alias in FLOWS:
            flows.enter_context(flowing(scene.source, topic(alias), rate=RATE, partitions=PARTITIONS))
        scene.await_tasks(2)
        scene.await_more_records()
        dying, staying = scene.spark.workers
        for worker in scene.spark.workers:
            assert {_words(process)[0] for process in scene.pythons(worker)} == {str(scene.python)}
        dying.die()
        scene.await_more_records()
        scene.await_tasks(1)
        scene.await_more_records()
        assert len(scene.pythons(staying)) == 1 + len(FLOWS), "a daemon, and one task of each flow"
    for alias in FLOWS:
        await_caught_up(scene.source, scene.target, alias, [topic(alias)])
    scene.mirror.stop()
    for alias in FLOWS:
        source, target = scene.source.bootstrap_servers, scene.target.bootstrap_servers
        compared = compare_topic(source, target, topic(alias), f"{alias}.{topic(alias)}")
        assert compared.first_difference is None, compared.first_difference


def test_fewer_slots_than_tasks_are_shared_by_the_flows_and_logged(scene: Scene) -> None:
    said = scene.mirror.log_text()
    for alias in FLOWS:
        for slots in (2, 1):
            fewer = f"{slots} tasks instead of {TASKS_MAX}: Spark has {slots} slots for them"
            assert re.search(rf"WARNING \[{alias}->.* {fewer}", said)


def test_a_lost_executor_is_logged(scene: Scene) -> None:
    lost = r"WARNING \[.*Spark lost \d attempts of tasks and retries them: "
    assert re.search(lost, scene.mirror.log_text())


def test_executors_have_no_package_installed(scene: Scene) -> None:
    for package in ("sparkmirror", "kafka", "numpy", "pyarrow"):
        done = subprocess.run([scene.python, "-c", f"import {package}"], capture_output=True, check=False)
        assert b"ModuleNotFoundError" in done.stderr


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or [""]
    except psutil.NoSuchProcess:
        return [""]
