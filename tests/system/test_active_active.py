"""Two flows between two clusters (`A->B`, `B->A`): each gets the other's topics and copies nothing back."""

from collections.abc import Mapping
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import Keyed, append, create_topic, keyed, numbered, topics
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value
from tests.system.dual_run import Mirrored

ORDERS: Final = "active-shop.orders"
SENTINEL: Final = "sentinel-shop.orders"
"""Both flows' filters select these names and their remote topics, which only cycle detection excludes."""
FIND_TIMEOUT_S: Final = 30.0
DIRECTIONS: Final = (("A", "B"), ("B", "A"))
"""The topic and its remote topic."""
A_TO_B: Final = b"\x00\x01A\x00\x01B"
B_TO_A: Final = b"\x00\x01B\x00\x01A"
"""Heartbeat keys: the aliases of source and target as Kafka strings."""


@pytest.fixture(scope="module")
def pair(mirrored: Mirrored) -> Mapping[str, LocalCluster]:
    by_alias = dict(zip("AB", mirrored.sides, strict=True))
    for number, cluster in enumerate(by_alias.values()):
        create_topic(cluster.bootstrap_servers, ORDERS, partitions=2)
        append(cluster, ORDERS, numbered(50, first=1000 * number))
    await_replicas(by_alias, ORDERS)
    return by_alias


def await_replicas(pair: Mapping[str, LocalCluster], topic: str) -> None:
    for here, there in DIRECTIONS:
        await_topic(pair[here], f"{there}.{topic}")
        await_caught_up(pair[there], pair[here], there, [topic])


def await_topic(cluster: LocalCluster, topic: str) -> None:
    await_value(lambda: topic in topics(cluster), FIND_TIMEOUT_S, lambda: f"{topic} is not there")


def await_growth(cluster: LocalCluster, topic: str) -> list[Keyed]:
    """Wait for two more records; returns all records of the topic."""
    before = len(keyed(cluster, topic))

    def grown() -> list[Keyed] | None:
        now = keyed(cluster, topic)
        return now if len(now) >= before + 2 else None

    return await_value(grown, FIND_TIMEOUT_S, lambda: f"{topic} does not grow")


def test_each_cluster_gets_the_others_records_once(pair: Mapping[str, LocalCluster]) -> None:
    for number, cluster in enumerate(pair.values()):
        append(cluster, ORDERS, numbered(50, first=1000 * number + 50))
    await_replicas(pair, ORDERS)
    for number, (here, there) in enumerate(DIRECTIONS):
        assert keyed(pair[here], ORDERS) == numbered(100, first=1000 * number)
        assert keyed(pair[there], f"{here}.{ORDERS}") == keyed(pair[here], ORDERS)


def test_no_record_is_copied_back(pair: Mapping[str, LocalCluster]) -> None:
    # Both flows have listed topics again since the remote topics were created.
    for cluster in pair.values():
        create_topic(cluster.bootstrap_servers, SENTINEL)
    await_replicas(pair, SENTINEL)
    for here, there in DIRECTIONS:
        with_orders = {topic for topic in topics(pair[here]) if topic.endswith(ORDERS)}
        assert with_orders == {ORDERS, f"{there}.{ORDERS}"}


def test_heartbeats_are_replicated_and_not_copied_back(pair: Mapping[str, LocalCluster]) -> None:
    """Heartbeats that B->A emits into A are replicated by A->B regardless of its topic filter (KIP-1089)."""
    for (here, there), key in zip(DIRECTIONS, (A_TO_B, B_TO_A), strict=True):
        copied = await_growth(pair[here], f"{there}.heartbeats")
        assert {copied_key for copied_key, _ in copied} & {A_TO_B, B_TO_A} == {
            key
        }  # others' mirrors have more
        assert copied == keyed(pair[there], "heartbeats")[: len(copied)]
        back = {f"{here}.{there}.heartbeats", f"{there}.{here}.heartbeats"}
        assert back.isdisjoint(topics(pair[here]))


def test_no_internal_topic_is_mirrored(pair: Mapping[str, LocalCluster]) -> None:
    for here, there in DIRECTIONS:
        names = topics(pair[here])
        own = {f"mm2-{kind}.{there}.internal" for kind in ("offsets", "progress", "offset-syncs")}
        assert own <= set(names)
        assert [name for name in names if name.startswith((f"{there}.mm2-", f"{there}.__"))] == []
