"""A mirror in a process with its own Spark uses it and leaves it unchanged."""

import os
import re
import sys
from pathlib import Path
from typing import Final

import javaproperties
import pyspark
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.processes import Process, start_process
from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.positions import read_positions
from tests.spark import host_program
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.waiting import await_value

_SUBMIT: Final = Path(pyspark.__file__).parent / "bin" / "spark-submit"
WAIT_S: Final = 120.0


def programs(kind: str) -> list[str]:
    program = str(Path(host_program.__file__))
    if kind == "submitted":
        return [str(_SUBMIT), "--master", "local[6]", "--conf", "spark.ui.enabled=false", program]
    return [sys.executable, program]


@pytest.mark.parametrize("kind", ["session", "submitted", "connect", "session-ends", "connect-ends"])
def test_mirror_runs_in_the_hosts_spark_and_leaves_it_unchanged(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path, kind: str
) -> None:
    topic, alias = f"host.{kind}", f"host-{kind}"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
    for partition in range(2):
        append(source_cluster, topic, numbered(10), partition=partition)
    file, stop, log = (tmp_path / name for name in ("mm2.properties", "stop", "host.log"))
    properties = {
        **REPLICATION,
        "clusters": f"{alias}, target",
        f"{alias}.bootstrap.servers": source_cluster.bootstrap_servers,
        "target.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{alias}->target.enabled": "true",
        f"{alias}->target.topics": topic,
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
    }
    file.write_text(javaproperties.dumps(properties), encoding="ascii")
    path = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
    environment = ["env", f"PYTHONPATH={path}", f"PYSPARK_PYTHON={sys.executable}"]
    command = [*environment, *programs(kind), str(file), str(stop), kind]
    process = start_process([command], log, outlives_us=False)
    try:
        remote = f"{alias}.{topic}"
        _await_records(target_cluster, remote, 20, process, log)
        append(source_cluster, topic, numbered(5), partition=0)
        _await_records(target_cluster, remote, 25, process, log)
        stop.touch()
        await_value(lambda: not process.is_alive(), WAIT_S, log.read_text)
    finally:
        process.kill()
    said = log.read_text()
    if kind.endswith("-ends"):
        assert "told: the Spark session that this mirror ran in has ended" in said, said
        assert len(re.findall("^ERROR ", said, re.MULTILINE)) == 1, "one line of ours, whatever Spark says"
        _await_positions(target_cluster, alias, topic, [14, 9])
    else:
        assert "afterwards 7" in said, said
        assert ("meanwhile 7" in said) == (kind != "submitted"), said
        assert ("status [(0, 15), (1, 10)]" in said) == (kind != "submitted"), said
    if kind == "connect":
        assert "read 25" in said, said
        assert re.search(r"function in .*only_here\.zip", said), said
        assert "cancelled: True" in said, said
    assert "Traceback" not in said, said


def _await_records(cluster: LocalCluster, topic: str, count: int, process: Process, log: Path) -> None:
    def have_come() -> bool:
        assert process.is_alive(), log.read_text()
        return sum(end_offsets(cluster, [topic]).values()) == count

    await_value(have_come, WAIT_S, log.read_text)


def _await_positions(cluster: LocalCluster, alias: str, topic: str, expected: list[int]) -> None:
    """Wait until these positions are stored: tasks write them at their end."""
    partitions = [TopicPartition(topic, number) for number in range(len(expected))]

    def stored() -> list[int]:
        found = read_positions(
            connection(cluster),
            f"mm2-offsets.{alias}.internal",
            ConnectorName("MirrorSourceConnector"),
            Alias(alias),
            partitions,
        )
        return [found[partition].offset for partition in partitions if partition in found]

    await_value(lambda: stored() == expected, WAIT_S, lambda: str(stored()))
