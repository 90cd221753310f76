"""Mirrors and data frames on a cluster that starts executors and attempts, and takes them away."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.kafka.data.partition_offsets import await_stable
from tests.spark import speculation_program
from tests.spark.programs import PYTHON_PATH
from tests.spark.standalone import SparkCluster, SparkNode, standalone_cluster
from tests.support.broker_data import create_topic, end_offsets, records
from tests.support.command_lines import command_line
from tests.support.connections import connection
from tests.support.mirror import REPLICATION, Mirror, running_mirror
from tests.support.progress import await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.traffic import flowing
from tests.support.waiting import await_value, patience

TOPIC: Final = "manners"
ALIAS: Final = "mannered"
PARTITIONS: Final = 4
WAIT_S: Final = 120.0
DECOMMISSION: Final = {"spark.decommission.enabled": "true"}
DYNAMIC: Final = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "4",
    "spark.executor.cores": "1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("manners"), 2, 2, DECOMMISSION) as spark:
        yield spark


def properties(source: LocalCluster, target: LocalCluster) -> dict[str, str]:
    return {
        **REPLICATION,
        **DECOMMISSION,
        **DYNAMIC,
        "clusters": f"{ALIAS}, manners-target",
        f"{ALIAS}.bootstrap.servers": source.bootstrap_servers,
        "manners-target.bootstrap.servers": target.bootstrap_servers,
        f"{ALIAS}->manners-target.enabled": "true",
        f"{ALIAS}->manners-target.topics": TOPIC,
        "heartbeats.replication.enabled": "false",
        "tasks.max": str(PARTITIONS),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": sys.executable,
        "spark.sparkmirror.archive": "none",
    }


def executors(worker: SparkNode) -> int:
    lines = map(command_line, worker.processes())
    return sum("CoarseGrainedExecutorBackend" in line for line in lines)


def await_growth(target: LocalCluster, mirror: Mirror) -> None:
    """Wait for new records in every partition."""
    remote = f"{ALIAS}.{TOPIC}"
    before = end_offsets(target, [remote])

    def has_grown() -> bool:
        return all(end > before[at] for at, end in end_offsets(target, [remote]).items())

    await_value(has_grown, WAIT_S, mirror.log_text)


def test_all_tasks_start_without_executors_and_leave_decommissioned_ones(
    cluster: SparkCluster, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    config = properties(source_cluster, target_cluster)
    with running_mirror(tmp_path / "mirror", config, "--master", cluster.url) as mirror:
        with flowing(source_cluster, TOPIC, rate=100, partitions=PARTITIONS):
            mirror.await_log("copies 4 partitions in 4 tasks")
            assert "tasks instead of" not in mirror.log_text()
            await_value(lambda: sum(map(executors, cluster.workers)) == PARTITIONS, WAIT_S, mirror.log_text)
            await_growth(target_cluster, mirror)
            cluster.add_worker(2).await_log("(Successfully registered)")
            leaving = cluster.workers[0]
            leaving.processes()[0].send_signal(signal.SIGPWR)
            mirror.await_log("Spark decommissions executors with 2 of 4 tasks: reassigning the partitions")
            await_value(lambda: executors(leaving) == 0, WAIT_S, mirror.log_text)
            await_growth(target_cluster, mirror)
        await_caught_up(source_cluster, target_cluster, ALIAS, [TOPIC])
        assert not re.search("Spark lost", mirror.log_text()), "a killed task instead of one that left"
        mirror.stop()
    compared = compare_topic(
        source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, TOPIC, f"{ALIAS}.{TOPIC}"
    )
    assert compared.first_difference is None, compared.first_difference


def test_speculative_attempts_write_exactly_once(
    cluster: SparkCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    """The slow attempt has sent rows, and is killed when the speculative one is done."""
    topic = "manners.speculation"
    create_topic(target_cluster.bootstrap_servers, topic, partitions=2)
    arguments = [cluster.url, target_cluster.bootstrap_servers, topic, str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, str(Path(speculation_program.__file__)), *arguments],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S * patience(),
    )
    assert ended.returncode == 0, ended.stderr
    last = speculation_program.TASKS - 1
    assert (tmp_path / f"{last}.0").exists(), "no slow attempt"
    assert (tmp_path / f"{last}.1").exists(), "no speculative attempt"
    await_stable(connection(target_cluster), topic)
    values = [record.value() or b"" for record in records(target_cluster, topic, read_committed=True)]
    assert sorted(map(int, values)) == list(range(speculation_program.ROWS))


_LOCAL_CLUSTER: Final = """
import sys
from pathlib import Path
from sparkmirror.spark.session import Session
session = Session.start("local-cluster[2,1,512]", {}, Path(sys.argv[1]))
session.warm_up()
print(session.is_local, session.slots, session.host.setting("spark.network.timeout"))
session.close()
"""


def test_a_local_cluster_has_executors_and_time_outs_of_a_cluster(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LOCAL_CLUSTER, str(tmp_path / "spark.log")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S * patience())
    assert ended.stdout.split() == ["False", "2", "10s"], ended.stderr
