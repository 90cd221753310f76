"""Measures our share of a client quota beside that of Java's MirrorMaker 2: at the same time, on one pair.

Each of them has its own client ids, and with them the whole quota. `-s` shows what each copied.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import linear_regression
from typing import Final

import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, end_offsets, topics
from tests.support.client_quotas import quota
from tests.support.cluster_pairs import cluster_pair_of
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.waiting import await_value
from tests.system.java_mm2 import dedicated

RATE: Final = 200_000
SIZE: Final = 2_000
PARTITIONS: Final = 3
WINDOW_S: Final = 11.0
"""A broker measures a rate over that time, by default, and lets pass as much at once before."""
MEASURED_S: Final = 10 * WINDOW_S
START_S: Final = 90.0
TOTAL: Final = int(RATE * (START_S + MEASURED_S + 6 * WINDOW_S))
"""One may start long before the other, and must not have copied all when both are measured."""
TOPIC: Final = "big"
LEAST: Final = 0.95
LEAST_OF_LARGE: Final = 0.75
"""A source counts over 10 to 12 s, lets five large batches pass in them, and so never more than 0.93."""
BATCHES: Final = {"small": {"batch.size": "16000", "linger.ms": "50"}, "large": {"batch.size": "400000"}}


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("side", ["source", "target"])
def test_the_share_of_a_quota(side: str, batches: str, tmp_path: Path) -> None:
    with cluster_pair_of(1, {}, tmp_path / "clusters") as (source, target):
        fill(source, BATCHES[batches])
        limits = {"source": (source, "consumer_byte_rate"), "target": (target, "producer_byte_rate")}
        limited, key = limits[side]
        with quota(limited, key, RATE), both_mirrors(source, target, tmp_path) as aliases:
            copies = {f"{alias}.{TOPIC}" for alias in aliases}
            await_value(lambda: copies <= topics(target).keys(), START_S, lambda: f"not all of {copies}")
            time.sleep(2 * WINDOW_S)
            shares = measured(target, aliases, record_bytes(source) / RATE)
    said = ", ".join(f"{alias} {share:.3f}" for alias, share in shares.items())
    sys.stdout.write(f"quota of the {side}, {batches} batches: {said}\n")
    least = LEAST_OF_LARGE if (side, batches) == ("source", "large") else LEAST
    assert shares["ours"] >= max(least, min(shares["java"], LEAST)), said


def fill(source: LocalCluster, settings: Mapping[str, str]) -> None:
    create_topic(source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    values = [(b"%d" % at, b"v" * SIZE) for at in range(TOTAL // SIZE // PARTITIONS)]
    for partition in range(PARTITIONS):
        append(source, TOPIC, values, partition=partition, settings=settings)


def record_bytes(source: LocalCluster) -> float:
    """Return what a record takes in a batch, which is what a broker counts of it."""
    logs = source.brokers[0].data.glob(f"{TOPIC}-*/*.log")
    return sum(log.stat().st_size for log in logs) / sum(end_offsets(source, [TOPIC]).values())


@contextmanager
def both_mirrors(source: LocalCluster, target: LocalCluster, folder: Path) -> Iterator[tuple[str, str]]:
    """Run ours and Java's, each with one task, under an alias of its own."""
    ours, java = (properties_of(alias, source, target) for alias in ("ours", "java"))
    file = folder / "java.properties"
    file.write_text(javaproperties.dumps(java), encoding="ascii")
    with (
        running_mirror(folder / "ours", ours) as mirror,
        dedicated(file, folder / "java.log") as process,
    ):
        yield "ours", "java"
        assert process.is_alive(), process.log_text()
        mirror.stop()


def properties_of(alias: str, source: LocalCluster, target: LocalCluster) -> dict[str, str]:
    return {
        **REPLICATION,
        "config.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "clusters": f"{alias}, target",
        f"{alias}.bootstrap.servers": source.bootstrap_servers,
        "target.bootstrap.servers": target.bootstrap_servers,
        "target.producer.client.id": f"{alias}-producer",  # else both have Connect's
        f"{alias}->target.enabled": "true",
        f"{alias}->target.topics": TOPIC,
        "heartbeats.replication.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "tasks.max": "1",
    }


def measured(target: LocalCluster, aliases: tuple[str, ...], record_s: float) -> dict[str, float]:
    """Measure what arrives within `MEASURED_S`, as a share of a quota that lets a record pass in `record_s`.

    It is the slope of what has arrived: a quota lets batches pass at intervals of up to 20 s.
    """
    times: list[float] = []
    arrived: dict[str, list[int]] = {alias: [] for alias in aliases}
    end = time.monotonic() + MEASURED_S
    while (now := time.monotonic()) < end:
        times.append(now)
        for alias, counts in arrived.items():
            counts.append(sum(end_offsets(target, [f"{alias}.{TOPIC}"]).values()))
        time.sleep(0.1)
    assert max(counts[-1] for counts in arrived.values()) < TOTAL // SIZE // PARTITIONS * PARTITIONS
    return {alias: linear_regression(times, counts).slope * record_s for alias, counts in arrived.items()}
