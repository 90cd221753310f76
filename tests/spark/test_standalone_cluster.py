"""A mirror on a Spark cluster with a bare Python, one of whose workers is killed.

It has two flows, each of which has more tasks than its half of the cluster's slots.
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
from tests.support.command_lines import words_of
from tests.support.mirror import Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.traffic import flowing
from tests.support.waiting import await_value

FLOWS: Final = {"red": "B", "blue": "E"}
"""Target aliases by source alias, all of the same two clusters."""
PARTITIONS: Final = 4
TASKS_MAX: Final = 4
WORKERS: Final = 2
CORES: Final = 2
RATE: Final = 100
WAIT_S: Final = 120.0


def topic(alias: str) -> str:
    return f"standalone.{alias}"


@dataclass(frozen=True, slots=True)
class StandaloneMirror:
    source: LocalCluster
    target: LocalCluster
    spark: SparkCluster
    mirror: Mirror
    python: Path

    def await_tasks(self, tasks: int) -> None:
        """Wait until the last copy job of both flows has this number of tasks."""

        def have_tasks() -> bool:
            said = self.mirror.log_text()
            last = {
                alias: re.findall(rf"\[{alias}->.* partitions in (\d) tasks?", said)[-1:] for alias in FLOWS
            }
            return all(found == [str(tasks)] for found in last.values())

        await_value(have_tasks, WAIT_S, self.mirror.log_text)

    def await_more_records(self) -> None:
        """Wait for new records in every partition of both flows."""
        remotes = [f"{alias}.{topic(alias)}" for alias in FLOWS]
        before = end_offsets(self.target, remotes)

        def have_grown() -> bool:
            return all(end > before[at] for at, end in end_offsets(self.target, remotes).items())

        await_value(have_grown, WAIT_S, self.mirror.log_text)

    def pythons(self, worker: SparkNode) -> list[psutil.Process]:
        """List the Python daemons and their forks on a Spark worker."""
        return [
            process
            for process in worker.processes()
            if "sparkmirror.copy.task.worker_daemon" in words_of(process)
        ]


@pytest.fixture(scope="module")
def standalone(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneMirror]:
    folder = tmp_path_factory.mktemp("standalone")
    venv.create(folder / "bare", with_pip=False)
    python = folder / "bare" / "bin" / "python"
    for alias in FLOWS:
        create_topic(source_cluster.bootstrap_servers, topic(alias), partitions=PARTITIONS)
    with standalone_cluster(folder, WORKERS, CORES) as spark:
        config = properties(source_cluster, target_cluster, python)
        with running_mirror(folder / "mirror", config, "--master", spark.url) as mirror:
            yield StandaloneMirror(source_cluster, target_cluster, spark, mirror, python)


def properties(source: LocalCluster, target: LocalCluster, python: Path) -> dict[str, str]:
    config = {
        "clusters": "red, blue, B, E",
        "heartbeats.replication.enabled": "false",
        "tasks.max": str(TASKS_MAX),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": str(python),
    }
    for alias, into in FLOWS.items():
        config[f"{alias}.bootstrap.servers"] = source.bootstrap_servers
        config[f"{into}.bootstrap.servers"] = target.bootstrap_servers
        config[f"{alias}->{into}.enabled"] = "true"
        config[f"{alias}->{into}.topics"] = topic(alias)
    return config


def test_tasks_of_a_lost_worker_continue_on_the_other(standalone: StandaloneMirror) -> None:
    with ExitStack() as flows:
        for alias in FLOWS:
            flows.enter_context(flowing(standalone.source, topic(alias), rate=RATE, partitions=PARTITIONS))
        standalone.await_tasks(2)
        standalone.await_more_records()
        dying, staying = standalone.spark.workers
        for worker in standalone.spark.workers:
            programs = {word for it in standalone.pythons(worker) for word in words_of(it)[:1]}
            assert programs == {str(standalone.python)}
        dying.die()
        standalone.await_more_records()
        standalone.await_tasks(1)
        standalone.await_more_records()
        assert len(standalone.pythons(staying)) == 1 + len(FLOWS), "a daemon, and one task of each flow"
    for alias in FLOWS:
        await_caught_up(standalone.source, standalone.target, alias, [topic(alias)])
    standalone.mirror.stop()
    for alias in FLOWS:
        source, target = (
            standalone.source.bootstrap_servers,
            standalone.target.bootstrap_servers,
        )
        compared = compare_topic(source, target, topic(alias), f"{alias}.{topic(alias)}")
        assert compared.first_difference is None, compared.first_difference


def test_flows_share_too_few_slots_and_log_it(standalone: StandaloneMirror) -> None:
    said = standalone.mirror.log_text()
    for alias in FLOWS:
        for slots in (2, 1):
            fewer = f"{slots} tasks instead of {TASKS_MAX}: Spark has {slots} slots for them"
            assert re.search(rf"WARNING \[{alias}->.* {fewer}", said)


def test_a_lost_executor_is_logged(standalone: StandaloneMirror) -> None:
    lost = r"WARNING \[.*Spark lost \d attempts of tasks and retries them: "
    assert re.search(lost, standalone.mirror.log_text())


def test_executors_have_no_package_installed(standalone: StandaloneMirror) -> None:
    for package in ("sparkmirror", "kafka", "numpy", "pyarrow"):
        done = subprocess.run(
            [standalone.python, "-I", "-c", f"import {package}"], capture_output=True, check=False
        )
        assert b"ModuleNotFoundError" in done.stderr
