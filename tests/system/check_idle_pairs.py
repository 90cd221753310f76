"""Watches idle pairs of clusters that mirror each other: nothing may grow, whatever their settings are.

Each pair has an `orders` on both sides, and one mirror serves all pairs that are watched side by side. After
it has settled it is watched for `PERIODS` periods of `PERIOD_S`: no topic may appear, and no period may have
more records than the first.
"""

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import ClusterSpec, LocalCluster, start_clusters
from tests.support.broker_data import append, create_topic, end_offsets, numbered, topics
from tests.support.cluster_pairs import cluster_pair_of
from tests.support.mirror import REPLICATION, running_mirror

PERIODS: Final = int(os.environ.get("PERIODS", "2"))
PERIOD_S: Final = int(os.environ.get("PERIOD_S", "20"))
SETTLED_S: Final = max(20, PERIOD_S)
TIMEOUT_S: Final = 600 + PERIODS * PERIOD_S
IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
EVERYTHING: Final = {"topics": ".*", "topics.exclude": "foo.*"}
HEAP_MB: Final = 128
UNEVEN: Final = 1.05
"""Counting takes up to 3 s of a minute, before or after a second's heartbeats."""
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
    "emit.heartbeats.interval.seconds": "1",
    "refresh.topics.interval.seconds": "2",
    "refresh.groups.interval.seconds": "2",
    "emit.checkpoints.interval.seconds": "2",
}
COPIES: Final = r"lag [01] records over"
"""The line of a flow that has nothing left to copy. Tasks may start minutes after their job."""
SOME: Final = ("underscore", "own names of state")


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(
    "names", [pytest.param(SOME, id="some"), pytest.param(tuple(COMBINATIONS), id="all")]
)
def test_idle_pairs_do_not_grow(names: Sequence[str], tmp_path: Path) -> None:
    aliases = {name: aliases_of(name, number) for number, name in enumerate(names)}
    with pairs_of(aliases.values(), tmp_path / "clusters") as pairs:
        for cluster in pairs.values():
            create_topic(cluster.bootstrap_servers, "orders", partitions=1)
            append(cluster, "orders", numbered(10))
        properties = {"clusters": ", ".join(pairs), **REPLICATION, **QUICK}
        for alias, cluster in pairs.items():
            properties[f"{alias}.bootstrap.servers"] = cluster.bootstrap_servers
        for name, (one, two) in aliases.items():
            properties |= both_ways(one, two, COMBINATIONS[name])
        with running_mirror(tmp_path / "mirror", properties) as mirror:
            for one, two in aliases.values():
                mirror.await_log(f"{one}->{two}.*{COPIES}")
                mirror.await_log(f"{two}->{one}.*{COPIES}")
            watched = watch(pairs)
            mirror.stop()
    assert_constant(watched)


def aliases_of(name: str, number: int) -> tuple[str, str]:
    """An alias with the separator in it is refused."""
    mark = "x" if name == "dash" else "-"
    return f"CL{number}{mark}1", f"CL{number}{mark}2"


@contextmanager
def pairs_of(aliases: Iterable[tuple[str, str]], home: Path) -> Iterator[Mapping[str, LocalCluster]]:
    """Start a cluster of one broker for each alias."""
    names = [alias for pair in aliases for alias in pair]
    started = start_clusters([(ClusterSpec(name, 1, {}, heap_mb=HEAP_MB), home / name) for name in names])
    try:
        yield dict(zip(names, started, strict=True))
    finally:
        for cluster in started:
            cluster.stop(timeout_s=0)


def both_ways(one: str, two: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of both flows; names of state topics are those of a cluster's worker."""
    found = {}
    for source, target in ((one, two), (two, one)):
        for key, value in {"enabled": "true", "emit.heartbeats.enabled": "true", **settings}.items():
            place = target if ".storage.topic" in key else f"{source}->{target}"
            found[f"{place}.{key}"] = value
    return found


@pytest.mark.timeout(TIMEOUT_S)
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
                "emit.heartbeats.enabled": "true",
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
                mirror.await_log(COPIES)
            watched = watch({"one": a, "two": b})
            for mirror in (one, two):
                mirror.stop()
    assert_constant(watched)
    assert not any(topic.count("source.") > 1 for side in watched[-1].values() for topic in side)


Counts = Mapping[str, Counter[str]]
"""By cluster, the sums of the end offsets of each of its topics."""


def watch(clusters: Mapping[str, LocalCluster]) -> list[Counts]:
    """Count at the beginning of each period, and at the end of the last one."""
    time.sleep(SETTLED_S)
    begin = time.monotonic()
    watched = [counts(clusters)]
    for period in range(1, PERIODS + 1):
        time.sleep(max(0.0, begin + period * PERIOD_S - time.monotonic()))
        watched.append(counts(clusters))
    return watched


def counts(clusters: Mapping[str, LocalCluster]) -> Counts:
    return {name: _counts(cluster) for name, cluster in clusters.items()}


def _counts(cluster: LocalCluster) -> Counter[str]:
    found: Counter[str] = Counter()
    names = [topic for topic in topics(cluster) if not topic.startswith("__")]
    for partition, end in end_offsets(cluster, names).items():
        found[partition.topic] += end
    return found


def assert_constant(watched: Sequence[Counts]) -> None:
    for cluster in watched[0]:
        sums = [each[cluster] for each in watched]
        first = sums[1] - sums[0]
        for before, after in itertools.pairwise(sums):
            assert after.keys() == before.keys(), cluster
            more = after - before
            assert more.total() <= first.total() * UNEVEN + SLACK, (cluster, first, more, totals(sums))


def totals(sums: Sequence[Counter[str]]) -> list[int]:
    """The records of each period."""
    return [(after - before).total() for before, after in itertools.pairwise(sums)]
