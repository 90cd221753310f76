"""Copying begins where `auto.offset.reset=latest` says: later partitions, retention, other names."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, delete_records, grow, keyed, numbered
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.waiting import await_value

TOPIC: Final = "begin.orders"
NEW: Final = "begin.new"
OLD: Final = numbered(100)
ARRIVES_S: Final = 60


@pytest.fixture(scope="module")
def properties(source_cluster: LocalCluster, target_cluster: LocalCluster) -> dict[str, str]:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    append(source_cluster, TOPIC, OLD)
    return {
        "clusters": "wb, wt",
        "wb.bootstrap.servers": source_cluster.bootstrap_servers,
        "wt.bootstrap.servers": target_cluster.bootstrap_servers,
        "wb.consumer.auto.offset.reset": "latest",
        "wb->wt.enabled": "true",
        "wb->wt.topics": "begin.*",
        "refresh.topics.interval.seconds": "1",
        "heartbeats.replication.enabled": "false",
        **REPLICATION,
    }


def test_where_copying_begins(
    properties: dict[str, str], source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    source, target = source_cluster, target_cluster
    written = 1000

    def write(topic: str, count: int, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
        nonlocal written
        records = numbered(count, written)
        written += count
        append(source, topic, records, partition=partition)
        return records

    def arrives(remote: str, expected: list[tuple[bytes | None, bytes | None]]) -> None:
        """Each record once, and no other."""
        await_value(
            lambda: len(keyed(target, remote)) >= len(expected),
            ARRIVES_S,
            lambda: f"{remote} has {len(keyed(target, remote))} of {len(expected)} records",
        )
        assert Counter(keyed(target, remote)) == Counter(expected)

    with running_mirror(tmp_path / "one", {**properties, "wb->wt.name": "one"}) as mirror:
        mirror.await_log("auto.offset.reset=latest leaves out 100 records of begin.orders")
        mirror.await_log("nothing new to copy, lag 0 records over 2 partitions")
        orders = write(TOPIC, 10)
        arrives("wb.begin.orders", orders)
        grow(source, TOPIC, 4)
        orders += write(TOPIC, 500, partition=2) + write(TOPIC, 500, partition=3)
        create_topic(source.bootstrap_servers, NEW, partitions=2)
        new = write(NEW, 1000)
        arrives("wb.begin.orders", orders)
        arrives("wb.begin.new", new)
        mirror.stop()
    grow(source, NEW, 3)
    new += write(NEW, 30, partition=2)
    write(TOPIC, 50)
    delete_records(source, TOPIC, 130)
    orders += numbered(30, written - 30)
    with running_mirror(tmp_path / "other", {**properties, "wb->wt.name": "other"}) as mirror:
        mirror.await_log("one has copied")
        mirror.await_log(r"offsets 110 to 129 were gone from the source before they were copied \(20 records")
        arrives("wb.begin.orders", orders)
        arrives("wb.begin.new", new)
        orders += write(TOPIC, 40)
        arrives("wb.begin.orders", orders)
        mirror.stop()
    changed = {**properties, "wb->wt.name": "other", "wb->wt.replication.policy.separator": "__"}
    with running_mirror(tmp_path / "separator", changed) as mirror:
        text = mirror.await_log("begin.orders was mirrored to")
        assert "wb.begin.orders" in text
        mirror.await_log("records went to wb.begin.orders before the naming of topics was changed")
        arrives("wb__begin.orders", write(TOPIC, 5))
        assert "deleted and created again" not in mirror.log_text()
        mirror.stop()
