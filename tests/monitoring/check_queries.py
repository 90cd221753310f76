"""A real Prometheus scrapes a running mirror and answers every query of our dashboards, and of others'.

`apt-get install prometheus`, then `python -m pytest tests/monitoring/check_queries.py`. Only ours are asked
unless STRIMZI names a folder with Strimzi's `strimzi-kafka-mirror-maker-2.json` and
`strimzi-kafka-connect.json`, and MSK one that is aws-samples/mirrormaker2-msk-migration, with
`kafka-connect.yml` and `grafana/MM2-dashboard-1.json`.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import confluent_kafka as confluent
import pytest
import yaml

from monitoring.boards import queries
from monitoring.files import ALERTS, ROOT
from sparkmirror.cli.main import main
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, numbered
from tests.support.metrics_page import page_of
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.topic_reader import end_offsets
from tests.support.waiting import await_value

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="not run: needs prometheus")

TOPIC: Final = "boards.orders"
WAIT_S: Final = 180.0
LABELS: Final = {
    "namespace": "n",
    "strimzi_io_kind": "KafkaMirrorMaker2",
    "strimzi_io_cluster": "c",
    "kubernetes_pod_name": "p",
}
OURS_ABOUT_NOTHING: Final = ("increase(sparkmirror_incidents_total", "sparkmirror_leader")
"""Incidents that did not happen, and what only nodes of a Connect group have."""
STRIMZIS_WITHOUT_ANSWER: Final = (
    "container_cpu_usage_seconds_total",
    "kafka_admin_client_connection_count",
    "kafka_connect_connector_task_status",
    "SourceConnector",  # names that Strimzi gives connectors on a worker; in dedicated mode they have Java's
    "task_count{namespace",  # tasks with issues, of which there are none
)
MSKS_WITHOUT_ANSWER: Final = ("consumer-mm2-msc-cons-",)
"""docs/metrics.md gives the reasons."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def commit(cluster: LocalCluster, group: str, partition: confluent.TopicPartition) -> None:
    consumer = confluent.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0}
    )

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=[partition], asynchronous=False)
        except confluent.KafkaException:
            return False
        return True

    await_value(is_committed, 30.0, lambda: f"{group} commits nothing")
    consumer.close()


@contextmanager
def prometheus(target: str, folder: Path) -> Iterator[str]:
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ROOT / ALERTS)],
        "scrape_configs": [
            {"job_name": "mirror", "static_configs": [{"targets": [target], "labels": LABELS}]}
        ],
    }
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    address = f"127.0.0.1:{port}"
    command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


def has_answer(url: str, query: str) -> bool:
    try:
        with urlopen(f"{url}/api/v1/query?{urlencode({'query': query})}", timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
    except OSError:  # it does not listen yet
        return False
    return bool(answer["data"]["result"])


def unanswered(url: str, asked: list[str], *, ours: tuple[str, ...]) -> set[str]:
    """Return the queries without an answer, except those that can't have one."""
    left = {query for query in asked if not any(part in query for part in ours)}
    deadline = time.monotonic() + WAIT_S
    while left and time.monotonic() < deadline:
        time.sleep(1)
        left = {query for query in left if not has_answer(url, query)}
    return left


def panels(board: dict[str, Any]) -> Iterator[str]:
    for panel in board.get("panels", ()):
        yield from (target["expr"] for target in panel.get("targets", ()) if target.get("expr"))
        yield from panels(panel)


def strimzis(folder: Path) -> list[str]:
    found = []
    for name in ("strimzi-kafka-mirror-maker-2.json", "strimzi-kafka-connect.json"):
        for query in panels(json.loads((folder / name).read_text(encoding="utf-8"))):
            asked = query.replace("$kubernetes_namespace", "n").replace("KafkaConnect.*", "KafkaMirrorMaker2")
            found.append(re.sub(r"\$strimzi_\w+_cluster_name", "c", asked))
    return found


def asked_of(rules: str, alias: str) -> tuple[list[str], tuple[str, ...]]:
    """Queries, and parts of those that have no answer."""
    if rules == "connect":
        named = ("$source", alias), ("$target", "B"), ("$job", "mirror")
        asked = queries()
        for variable, value in named:
            asked = [query.replace(variable, value) for query in asked]
        return asked, OURS_ABOUT_NOTHING
    if rules == "strimzi":
        return strimzis(Path(os.environ["STRIMZI"])), STRIMZIS_WITHOUT_ANSWER
    board = Path(os.environ["MSK"]) / "grafana" / "MM2-dashboard-1.json"
    return list(panels(json.loads(board.read_text(encoding="utf-8")))), MSKS_WITHOUT_ANSWER


@pytest.mark.parametrize(
    "rules",
    [
        "connect",
        pytest.param(
            "strimzi", marks=pytest.mark.skipif("STRIMZI" not in os.environ, reason="not run: needs STRIMZI")
        ),
        pytest.param("msk", marks=pytest.mark.skipif("MSK" not in os.environ, reason="not run: needs MSK")),
    ],
)
def test_every_query_has_an_answer(
    rules: str, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    alias = f"boards-{rules}"
    topic = f"{TOPIC}.{rules}"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
    append(source_cluster, topic, numbered(1000))
    commit(source_cluster, f"{alias}-group", confluent.TopicPartition(topic, 0, 10))
    properties = {
        **REPLICATION,
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": topic,
        f"{alias}->B.groups": f"{alias}-group",
        f"{alias}->B.emit.heartbeats.enabled": "true",
        "emit.checkpoints.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
    }
    file = str(Path(os.environ["MSK"]) / "kafka-connect.yml") if rules == "msk" else rules
    arguments = ("--metrics-port", "127.0.0.1:0", "--metrics-rules", file)
    with running_mirror(tmp_path / "mirror", properties, *arguments) as mirror:
        target = page_of(mirror).url.removeprefix("http://").removesuffix("/metrics")
        if rules == "connect":
            copies = [f"{alias}.{topic}"]
            await_value(
                lambda: sum(end_offsets(target_cluster.bootstrap_servers, copies).values()) == 1000,
                WAIT_S,
                mirror.log_text,
            )
            assert main(["verify", str(mirror.file), "--flow", f"{alias}->B"]) == 0
        with prometheus(target, tmp_path) as url:
            asked, without = asked_of(rules, alias)
            assert unanswered(url, asked, ours=without) == set()
        mirror.stop()
