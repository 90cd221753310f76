"""Dedicated mode on two nodes: they share a file's flows, and one takes over from the other."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import create_topic, end_offsets, keyed, topics
from tests.support.mirror import REPLICATION, Mirror
from tests.support.topic_reader import await_leaders
from tests.support.traffic import flowing
from tests.support.waiting import await_value

SOURCES = "sh0", "sh1", "sh2"
TARGET = "shared"
TOPIC = "spread.orders"
PARTITIONS = 2
WAIT_S = 90.0


@pytest.fixture
def nodes(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> Iterator[list[Mirror]]:
    """Two processes with the same file of three flows."""
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    properties = {
        **REPLICATION,
        "clusters": ",".join([*SOURCES, TARGET]),
        "dedicated.mode.enable.internal.rest": "true",
        "topics": TOPIC,
        f"{TARGET}.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{TARGET}.session.timeout.ms": "6000",
        f"{TARGET}.heartbeat.interval.ms": "1000",
    }
    for source in SOURCES:
        properties[f"{source}.bootstrap.servers"] = source_cluster.bootstrap_servers
        properties[f"{source}->{TARGET}.enabled"] = "true"
    started = [Mirror(tmp_path / f"node-{number}", properties) for number in (0, 1)]
    try:
        for node in started:
            node.start()
        yield started
    finally:
        for node in started:
            node.close()


def test_flows_of_a_lost_node_move_to_the_other(
    nodes: list[Mirror], source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    copies = [f"{source}.{TOPIC}" for source in SOURCES]
    with flowing(source_cluster, TOPIC, rate=200, partitions=PARTITIONS):
        await_all_grow(nodes, target_cluster, copies)
        lost, other = sorted(nodes, key=lambda node: -len(flows_of(node)))
        assert len(flows_of(lost) | flows_of(other)) == len(SOURCES)
        for process in lost.processes():
            process.kill()
        for source in flows_of(lost):
            other.await_log(rf"{source}->{TARGET}\] runs on this node", WAIT_S)
        await_all_grow([other], target_cluster, copies)
    expected = Counter(keyed(source_cluster, TOPIC))
    for copied in copies:
        await_value(partial(holds, target_cluster, copied, expected.total()), WAIT_S, other.log_text)
        assert Counter(keyed(target_cluster, copied)) == expected
    other.stop()


def holds(cluster: LocalCluster, copied: str, count: int) -> bool:
    return len(keyed(cluster, copied)) >= count


def flows_of(node: Mirror) -> set[str]:
    """Return the sources of the flows that the node runs according to its log."""
    runs: set[str] = set()
    for line in node.log_text().splitlines():
        for source in SOURCES:
            if f"{source}->{TARGET}] runs on this node" in line:
                runs.add(source)
            elif f"{source}->{TARGET}] does not run on this node" in line:
                runs.discard(source)
    return runs


def await_all_grow(nodes: list[Mirror], target_cluster: LocalCluster, copies: list[str]) -> None:
    await_value(lambda: set(copies) <= topics(target_cluster).keys(), WAIT_S, nodes[0].log_text)
    await_leaders(target_cluster.bootstrap_servers, dict.fromkeys(copies, PARTITIONS))
    before = ends(target_cluster, copies)
    await_value(
        lambda: all(after > before[copied] for copied, after in ends(target_cluster, copies).items()),
        WAIT_S,
        lambda: "\n".join(node.log_text() for node in nodes),
    )


def ends(cluster: LocalCluster, copies: list[str]) -> dict[str, int]:
    found = end_offsets(cluster, copies)
    return {
        copied: sum(end for partition, end in found.items() if partition.topic == copied) for copied in copies
    }
