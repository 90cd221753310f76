"""Connectors as a tutorial deploys them, with factors of 3 by default, on clusters of two brokers each.

Records are copied by tasks that run, as with Java; what can't be created is named with the factor to set, and
its connector is FAILED.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.clusters.local import start_clusters
from tests.support.broker_data import append, create_topic, keyed_of, numbered, topics
from tests.support.mirror import START_TIMEOUT_S
from tests.support.waiting import await_value
from tests.system.connect_node import ConnectNode, running_nodes

MM2_SH: Final = Path(__file__).parents[2] / "bin" / "mm2.sh"
TOPIC: Final = "test"
PARTITIONS: Final = 5
RECORDS: Final = 100
COPY_TIMEOUT_S: Final = 90.0
CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
WORKER: Final = {
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000",
}
MORE: Final[dict[str, dict[str, object]]] = {
    "cpc": {"connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"},
    "hbc": {"connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"},
    "msc": {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "topics": TOPIC,
        "sync.topic.acls.enabled": False,
        "sync.topic.configs.enabled": False,
        "replication.factor": "1",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "tasks.max": "2",
    },
}


@pytest.fixture(scope="module")
def short_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    folder = tmp_path_factory.mktemp("short")
    plans = [(ClusterSpec(name, brokers=2, heap_mb=192), folder / name) for name in ("source-0", "target-0")]
    source, target = start_clusters(plans)
    create_topic(source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        append(source, TOPIC, numbered(RECORDS), partition=partition)
    yield source, target
    for cluster in (source, target):
        cluster.stop(timeout_s=0)


@pytest.fixture(scope="module")
def node(
    short_pair: tuple[LocalCluster, LocalCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectNode]:
    properties = {**WORKER, "bootstrap.servers": short_pair[1].bootstrap_servers}
    with running_nodes(tmp_path_factory.mktemp("short-worker"), properties, 1) as (only,):
        only.await_answers()
        yield only
        only.stop()


def write_files(folder: Path, source: LocalCluster, target: LocalCluster) -> None:
    for kind, more in MORE.items():
        name = f"mm2-{kind}-source-0"
        settings = {
            "name": name,
            "key.converter": CONVERTER,
            "value.converter": CONVERTER,
            "source.cluster.alias": "source-0",
            "source.cluster.bootstrap.servers": source.bootstrap_servers,
            "target.cluster.alias": "target-0",
            "target.cluster.bootstrap.servers": target.bootstrap_servers,
            **more,
        }
        (folder / f"{name}.json").write_text(json.dumps(settings), encoding="ascii")


def mm2_sh(action: str, folder: Path, node: ConnectNode) -> str:
    done = subprocess.run(
        [str(MM2_SH), action, "source-0"],
        env={**os.environ, "CONF_FOLDER": str(folder), "TARGET_HOST": node.url},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=START_TIMEOUT_S,
    )
    return done.stdout


def test_records_are_copied_and_what_is_missing_is_named(
    short_pair: tuple[LocalCluster, LocalCluster], node: ConnectNode, tmp_path: Path
) -> None:
    source, target = short_pair
    write_files(tmp_path, source, target)
    assert mm2_sh("deploy", tmp_path, node).startswith("Deploying cluster source-0\n")

    def copied() -> bool:
        return TOPIC in topics(target) and all(
            len(keyed_of(target, TOPIC, partition)) >= RECORDS for partition in range(PARTITIONS)
        )

    await_value(copied, COPY_TIMEOUT_S, node.log_text)
    for partition in range(PARTITIONS):
        assert keyed_of(target, TOPIC, partition) == numbered(RECORDS)
    await_value(
        lambda: node.states("mm2-msc-source-0") == ("FAILED", ["RUNNING", "RUNNING"]),
        COPY_TIMEOUT_S,
        lambda: str(node.states("mm2-msc-source-0")),
    )
    assert 'Source connector: "FAILED"' in mm2_sh("status", tmp_path, node)

    def missing() -> dict[str, Any]:
        found = [trouble for flow in node.ask("GET", "/mirror").body["flows"] for trouble in flow["troubles"]]
        return {name: trouble for trouble in found for name in trouble["names"]}

    await_value(lambda: len(missing()) >= 2, COPY_TIMEOUT_S, lambda: str(missing()))
    syncs = missing()["mm2-offset-syncs.target-0.internal"]
    assert (syncs["word"], syncs["action_required"]) == ("not created", True)
    assert "offset-syncs.topic.replication.factor" in f"{syncs['reason']} {syncs['remedy']}"
