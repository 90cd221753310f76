"""The JMX exporter on Java's MirrorMaker 2 and our `/metrics` with one rules file: the same names and labels.

No part of `make test`: it needs the exporter, which Maven Central has as
io.prometheus.jmx:jmx_prometheus_javaagent.
`JMX_EXPORTER=JAR python -m pytest tests/monitoring/check_jmx_exporter.py`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.support.broker_data import append, create_topic, numbered
from tests.support.metrics_page import Page, page_of
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.waiting import await_value
from tests.system.consumer_groups import commit
from tests.system.java_mm2 import dedicated

AGENT: Final = os.environ.get("JMX_EXPORTER", "")
pytestmark = pytest.mark.skipif(not AGENT, reason="not run: needs JMX_EXPORTER, the jar")

IS_BEFORE_1_0: Final = "-0." in Path(AGENT).name
WAIT_S: Final = 300.0
PACKAGED: Final = files("sparkmirror.metrics.rules")
RULES: Final = {name: str(PACKAGED / f"{name}.yaml") for name in ("connect", "strimzi")}
OF_PROCESSES: Final = ("sparkmirror_", "process_", "python_", "jvm_", "jmx_", "java_")
NAMES_OF_PROCESSES: Final = ("version", "coordinator")
"""Metrics whose labels name a process or its version: only the labels' names are the same."""
CLASHING: Final = (
    "kafka_consumer_fetch_manager_records_lag",
    "kafka_connect_source_task_source_record_active_count",
)
"""The patterns of `strimzi` match `records-lag-avg` and `-max`, too, which are not measured here: from 1.0 on
the exporter gives all three the MBean's name."""
Series = tuple[str, frozenset[tuple[str, str]]]


def series_of(page: Page) -> set[Series]:
    """The series, except those about the process.

    The exporter takes `_total` off gauges from 1.0 on.
    """
    try:
        samples = page.read()
    except OSError:  # it does not listen yet
        return set()
    return {
        (name.removesuffix("_total"), frozenset(shown_labels(name, labels).items()))
        for name, found in samples.items()
        if not name.startswith(OF_PROCESSES)
        for labels, _ in found
    }


def shown_labels(name: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    return dict.fromkeys(labels, "") if any(it in name for it in NAMES_OF_PROCESSES) else labels


def of_mirror(found: set[Series]) -> set[Series]:
    """The series of MirrorMaker's own MBeans."""
    return {each for each in found if each[0].startswith("kafka_connect_mirror_")}


@contextmanager
def java_page(properties: Path, rules: str, folder: Path) -> Iterator[Page]:
    """`/metrics` of Java's MirrorMaker 2 by the exporter."""
    port = ReservedPort()
    agent = f"-javaagent:{AGENT}={HOST}:{port.number}:{rules}"
    try:
        with dedicated(properties, folder / "java.log", options=[agent]):
            yield Page(f"http://{HOST}:{port.number}/metrics")
    finally:
        port.release()


@pytest.mark.parametrize("rules", list(RULES))
def test_names_and_labels_are_those_of_the_exporter(
    rules: str, source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    alias, topic, group = f"jmx-{rules}", f"jmx.{rules}.orders", f"jmx-{rules}-readers"
    create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
    for partition in range(2):
        append(source_cluster, topic, numbered(100), partition=partition)
    commit(source_cluster, group, topic, {0: 100})
    properties = {
        **REPLICATION,
        "config.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"B->{alias}.emit.heartbeats.enabled": "false",
        f"{alias}->B.topics": topic,
        f"{alias}->B.groups": group,
        "emit.heartbeats.enabled": "true",
        "heartbeats.replication.enabled": "false",
        "emit.checkpoints.interval.seconds": "1",
        "B.offset.flush.interval.ms": "1000",
        "tasks.max": "1",
    }
    file = tmp_path / "java.properties"
    file.write_text(javaproperties.dumps(properties), encoding="ascii")

    def is_whole(found: set[Series]) -> bool:
        """Both partitions, the group's checkpoint, and what clients measure a little later."""
        marks = (
            "record_count",
            "'partition', '1'",
            "checkpoint_latency",
            "records_lag",
            "record_active_count",
        )
        return all(mark in str(found) for mark in marks)

    with java_page(file, RULES[rules], tmp_path) as page:
        javas = await_value(
            lambda: found if is_whole(found := series_of(page)) else None,
            WAIT_S,
            lambda: f"{sorted(of_mirror(series_of(page)))}\n{(tmp_path / 'java.log').read_text()[-5000:]}",
        )
    append(source_cluster, topic, numbered(100, first=100), partition=0)
    append(source_cluster, topic, numbered(100, first=100), partition=1)
    commit(source_cluster, group, topic, {0: 200})
    served = ("--metrics-port", f"{HOST}:0", "--metrics-rules", RULES[rules])
    with running_mirror(tmp_path / "mirror", properties, *served) as mirror:
        page = page_of(mirror)
        ours = await_value(
            lambda: found if is_whole(found := series_of(page)) else None,
            WAIT_S,
            lambda: f"{sorted(of_mirror(series_of(page)))}\n{mirror.log_text()[-5000:]}",
        )
        mirror.stop()
    assert of_mirror(ours) == of_mirror(javas)
    without = CLASHING if rules == "strimzi" and not IS_BEFORE_1_0 else ()
    assert {(name, labels) for name, labels in ours - javas if name not in without} == set()
