"""Two clusters are mirrored into one topic of a third: each record is there once, in its source's order."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster, start_clusters
from tests.support.broker_data import Keyed, append, create_topic, end_offsets, keyed, keyed_of, numbered
from tests.support.mirror import COMMAND, REPLICATION, Mirror
from tests.support.progress import await_caught_up
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system.prepared_mirror import verify

TOPIC: Final = "orders"
PARTITIONS: Final = 2
SOURCES: Final = ("one", "two")
HUB: Final = "hub"
OTHERS: Final = numbered(50, 1_000_000)
COMMAND_S: Final = 60.0


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[dict[str, LocalCluster]]:
    names = (*SOURCES, HUB)
    specs = [(ClusterSpec(name, 1, {}, heap_mb=256), tmp_path / name) for name in names]
    started = dict(zip(names, start_clusters(specs), strict=True))
    try:
        for name in SOURCES:
            create_topic(started[name].bootstrap_servers, TOPIC, partitions=PARTITIONS)
        yield started
    finally:
        for cluster in started.values():
            cluster.stop(timeout_s=0)


def test_fan_in(clusters: dict[str, LocalCluster], tmp_path: Path) -> None:
    """Also after a crash, beside records that both sources have, and those of a third writer."""
    one, two = (clusters[name] for name in SOURCES)
    mirror = Mirror(tmp_path / "mirror", properties_of(clusters))
    try:
        mirror.start()
        # `flowing` writes the same keys and values to both sources.
        with flowing(one, TOPIC, rate=200, partitions=PARTITIONS):
            with flowing(two, TOPIC, rate=300, partitions=PARTITIONS):
                mirror.await_log("2 flows write it: orders of")
                await_copied(clusters, 500)
                for process in mirror.processes():
                    process.kill()
                mirror.wait(COMMAND_S)
                mirror.start()
                await_copied(clusters, end_of(clusters[HUB]) + 500)
            append(clusters[HUB], TOPIC, OTHERS)
        for name in SOURCES:
            await_caught_up(clusters[name], clusters[HUB], name, [TOPIC])
        assert "2 flows write it" in said(mirror, "status", code=0)
        mirror.stop()
    finally:
        mirror.close()
    copied = Counter(keyed(clusters[HUB], TOPIC))
    assert copied == Counter(keyed(one, TOPIC)) + Counter(keyed(two, TOPIC)) + Counter(OTHERS)
    for partition in range(PARTITIONS):
        there = keyed_of(clusters[HUB], TOPIC, partition)
        for name in SOURCES:
            assert is_subsequence(keyed_of(clusters[name], TOPIC, partition), there)
    assert "2 flows write it" in said(mirror, "plan", code=0)
    compared = verify(mirror.file)
    assert compared.code == 0, (compared.output, compared.errors)


def properties_of(clusters: dict[str, LocalCluster]) -> dict[str, str]:
    properties = {
        "clusters": ", ".join(clusters),
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "topics": TOPIC,
        "tasks.max": "1",
        **REPLICATION,
        **{f"{name}.bootstrap.servers": cluster.bootstrap_servers for name, cluster in clusters.items()},
    }
    return properties | {f"{name}->{HUB}.enabled": "true" for name in SOURCES}


def end_of(cluster: LocalCluster) -> int:
    return sum(end_offsets(cluster, [TOPIC]).values())


def await_copied(clusters: dict[str, LocalCluster], count: int) -> None:
    await_value(lambda: end_of(clusters[HUB]) >= count, COMMAND_S, lambda: f"not {count} records")


def said(mirror: Mirror, command: str, code: int) -> str:
    """Run a command on the mirror's file; it must end with this code."""
    ended = subprocess.run(
        [COMMAND, command, str(mirror.file)], capture_output=True, check=False, text=True, timeout=COMMAND_S
    )
    text = ended.stdout + ended.stderr
    assert ended.returncode == code, text
    return " ".join(text.split())


def is_subsequence(some: list[Keyed], there: list[Keyed]) -> bool:
    rest = iter(there)
    return all(record in rest for record in some)
