"""Watches idle pairs of clusters that mirror each other: nothing may grow, whatever their settings are.

Each pair has an `orders` on both sides. After the mirror has settled it is watched for two periods: no topic
may appear, and the second period may have no more records than the first. `PERIOD_S` is a period's length.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, end_offsets, numbered, topics
from tests.support.cluster_pairs import cluster_pair_of
from tests.support.mirror import REPLICATION, running_mirror

PERIOD_S: Final = int(os.environ.get("PERIOD_S", "20"))
SETTLED_S: Final = 20
IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
EVERYTHING: Final = {"topics": ".*", "topics.exclude": "foo.*"}
SLACK: Final = 10
"""Records by which one period may exceed the other, of heartbeats and summaries at its ends."""

COMBINATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "defaults": {},
    "everything": EVERYTHING,
    "underscore": {**EVERYTHING, "replication.policy.separator": "_"},
    "dash": {**EVERYTHING, "replication.policy.separator": "-"},
    "long separator": {**EVERYTHING, "replication.policy.separator": "__"},
    "underscore for copies only": {
        **EVERYTHING,
        "replication.policy.separator": "_",
        "replication.policy.internal.topic.separator.enabled": "false",
    },
    "identity": {**EVERYTHING, "replication.policy.class": IDENTITY},
    "identity underscore": {
        **EVERYTHING,
        "replication.policy.class": IDENTITY,
        "replication.policy.separator": "_",
    },
    "state topics by name": {"topics": "orders, mm2-progress.*, mm2-offsets.*, .*checkpoints.*, .*internal"},
    "own names of state": {
        **EVERYTHING,
        "offset.storage.topic": "positions",
        "status.storage.topic": "statuses",
        "config.storage.topic": "configs",
    },
    "syncs on the target": {**EVERYTHING, "offset-syncs.topic.location": "target"},
    "named topics": {"topics": "orders", "topics.exclude": "foo.*", "replication.policy.separator": "_"},
}
QUICK: Final = {
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
    "refresh.topics.interval.seconds": "2",
    "refresh.groups.interval.seconds": "2",
    "emit.checkpoints.interval.seconds": "2",
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_an_idle_pair_does_not_grow(name: str, tmp_path: Path) -> None:
    # An alias with the separator in it is refused.
    one, two = ("CL1", "CL2") if name == "dash" else ("CL-1", "CL-2")
    with cluster_pair_of(1, {}, tmp_path / "clusters") as pair:
        a, b = pair
        for cluster in pair:
            create_topic(cluster.bootstrap_servers, "orders", partitions=1)
            append(cluster, "orders", numbered(10))
        properties = {
            **REPLICATION,
            **QUICK,
            "clusters": f"{one}, {two}",
            f"{one}.bootstrap.servers": a.bootstrap_servers,
            f"{two}.bootstrap.servers": b.bootstrap_servers,
            f"{one}->{two}.enabled": "true",
            f"{two}->{one}.enabled": "true",
            **COMBINATIONS[name],
        }
        with running_mirror(tmp_path / "mirror", properties) as mirror:
            mirror.await_log("copy job 1 copies")
            time.sleep(SETTLED_S)
            watched = [counts(pair)]
            for _ in range(2):
                time.sleep(PERIOD_S)
                watched.append(counts(pair))
            mirror.stop()
        assert_constant(watched)


def test_files_with_aliases_the_other_way_round_do_not_multiply(tmp_path: Path) -> None:
    with cluster_pair_of(1, {}, tmp_path / "clusters") as pair:
        a, b = pair
        create_topic(a.bootstrap_servers, "orders", partitions=1)
        append(a, "orders", numbered(10))
        sides = [(a, b), (b, a)]
        files = [
            {
                **REPLICATION,
                **QUICK,
                "clusters": "source, target",
                "source.bootstrap.servers": source.bootstrap_servers,
                "target.bootstrap.servers": target.bootstrap_servers,
                "source->target.enabled": "true",
                "source->target.topics": ".*",
            }
            for source, target in sides
        ]
        with (
            running_mirror(tmp_path / "one", files[0]) as one,
            running_mirror(tmp_path / "two", files[1]) as two,
        ):
            for mirror in (one, two):
                mirror.await_log("copy job 1 copies")
            time.sleep(SETTLED_S)
            watched = [counts(pair)]
            for _ in range(2):
                time.sleep(PERIOD_S)
                watched.append(counts(pair))
            for mirror in (one, two):
                mirror.stop()
        assert_constant(watched)
        assert not any(topic.count("source.") > 1 for side in watched[-1] for topic in side)


def counts(pair: tuple[LocalCluster, LocalCluster]) -> tuple[Counter[str], Counter[str]]:
    """Count the offsets of each topic on both clusters."""
    first, second = map(_counts, pair)
    return first, second


def _counts(cluster: LocalCluster) -> Counter[str]:
    found: Counter[str] = Counter()
    names = [topic for topic in topics(cluster) if not topic.startswith("__")]
    for partition, end in end_offsets(cluster, names).items():
        found[partition.topic] += end
    return found


def assert_constant(watched: list[tuple[Counter[str], Counter[str]]]) -> None:
    for side in range(2):
        before, between, after = (each[side] for each in watched)
        assert after.keys() == before.keys()
        first, second = between - before, after - between
        assert second.total() <= first.total() + SLACK, (first, second)
