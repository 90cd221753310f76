"""Offsets of groups that the target refuses are reported, and the others committed."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.groups.checkpoint_connector import CheckpointConnector
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.kafka.wire.error_codes import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from sparkmirror.metrics.looks import GroupsLook
from sparkmirror.offsets.wire_records import OffsetSync
from tests.contract.checkpointing import checkpointing
from tests.memory.server import MemoryServer, serving
from tests.support.any_cluster import AnyCluster
from tests.support.connections import connection
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

TOPICS: Final = ("bills", "orders")
SYNCS: Final = "mm2-offset-syncs.B.internal"
PARTITIONS: Final = 4
INVALID_GROUP_ID: Final = 24
NEXT: Final = 100
"""The offset behind the newest sync of each partition."""
WAIT_S: Final = 20.0

Pair = tuple[MemoryServer, MemoryServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two topics that are mirrored, each record at its own offset."""
    with serving("A") as source, serving("B") as target:
        prepare(source, target)
        yield source, target


def prepare(source: MemoryServer, target: MemoryServer) -> None:
    source.cluster.groups.metadata_bytes_max = 8192
    for topic in TOPICS:
        source.call(partial(source.cluster.create, topic, PARTITIONS))
        target.call(partial(target.cluster.create, f"A.{topic}", PARTITIONS))
    source.call(partial(source.cluster.create, SYNCS))
    syncs = [
        OffsetSync(TopicPartition(topic, number), offset, offset)
        for offset in (0, NEXT)
        for topic in TOPICS
        for number in range(PARTITIONS)
    ]
    with closing(TopicWriter(connection(source))) as writer:
        writer.write(SYNCS, [LogRecord(sync.encode_key(), sync.encode_value()) for sync in syncs])
    with closing(TopicWriter(connection(target))) as writer:
        for topic in TOPICS:
            filled = [LogRecord(None, b"record", number) for number in range(PARTITIONS)] * (NEXT + 1)
            writer.write(f"A.{topic}", filled)


@contextmanager
def running(pair: Pair) -> Iterator[CheckpointConnector]:
    source, target = pair
    settings = {
        "topics": ".*",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "translation.resolve": "off",
    }
    with checkpointing(("A", source), ("B", target), settings) as connector:
        yield connector


def commit(cluster: AnyCluster, group: str, offset: int, *metadata: str, topic: str = "orders") -> None:
    """Commit the offset for as many partitions as there are metadata."""
    offsets = {TopicPartition(topic, at): Committed(offset, each) for at, each in enumerate(metadata)}
    with closing(Groups(connection(cluster))) as groups:
        assert groups.write(GroupId(group), offsets) == {}


def committed(cluster: AnyCluster, group: str) -> dict[TopicPartition, Committed]:
    with closing(Groups(connection(cluster))) as groups:
        found = groups.committed([GroupId(group)])[GroupId(group)]
    assert isinstance(found, dict)
    return found


def await_committed(cluster: AnyCluster, group: str, *partitions: TopicPartition) -> None:
    await_value(
        lambda: committed(cluster, group).keys() == set(partitions),
        WAIT_S,
        lambda: f"{group}: {committed(cluster, group)}",
    )


def of(topic: str, count: int = PARTITIONS) -> list[TopicPartition]:
    return [TopicPartition(f"A.{topic}", number) for number in range(count)]


def errors(connector: CheckpointConnector) -> dict[str, str]:
    look = connector.looks.look(GroupsLook(connector._flow, connector._connector.name, "checkpoint"), 0.0)
    return {str(group): error for group, error in look.errors.items()}


def test_an_offset_whose_metadata_is_too_large_is_written_without_it(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    large = "m" * 6000
    commit(pair[0], "some", 100, "a", "b", large, "d")
    commit(pair[0], "all", 100, large, large)
    with running(pair) as connector:
        await_committed(pair[1], "some", *of("orders"))
        await_committed(pair[1], "all", *of("orders", 2))
        commit(pair[0], "some", 101, "a", "b", large, "d")
        await_value(
            lambda: [each.offset for each in committed(pair[1], "some").values()] == [101] * PARTITIONS,
            WAIT_S,
            lambda: str(committed(pair[1], "some")),
        )
        assert errors(connector) == {}
    assert [each.metadata for _, each in sorted(committed(pair[1], "some").items())] == ["a", "b", "", "d"]
    said = [line for line in caplog.messages if "refuses the metadata" in line]
    assert len(said) == 2, "once for each group"
    assert any("group some: B refuses the metadata of its offsets for A.orders-2" in line for line in said)
    assert all("offset.metadata.max.bytes" in line for line in said)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED"),
        (TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED"),
        (INVALID_GROUP_ID, "INVALID_GROUP_ID"),
        (UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_a_refusal_keeps_nothing_else_back_and_its_end_is_told(
    pair: Pair, caplog: pytest.LogCaptureFixture, code: int, said: str
) -> None:
    caplog.set_level(logging.INFO)
    _, target = pair
    target.cluster.groups.refusals["g1", "A.bills"] = code
    for group in ("g1", "g2"):
        for topic in TOPICS:
            commit(pair[0], group, 100, "", "", topic=topic)
    with running(pair) as connector:
        await_committed(target, "g2", *of("orders", 2), *of("bills", 2))
        await_committed(target, "g1", *of("orders", 2))
        await_value(lambda: errors(connector) or None, WAIT_S, lambda: "no state")
        assert errors(connector).keys() == {"g1"}
        assert f"group g1 for A.bills-0 on B: {said}" in errors(connector)["g1"]
        assert errors(connector)["g1"].endswith("; and for 1 more partition")
        (trouble,) = await_value(lambda: connector.troubles.now, WAIT_S, lambda: "no trouble")
        assert (trouble.what, trouble.word, trouble.requires_action) == ("g1", "not committed", True)
        assert said in trouble.reason
        assert "groups.exclude" in trouble.remedy
        assert not_committed(connector) == 1
        target.cluster.groups.refusals.clear()
        await_committed(target, "g1", *of("orders", 2), *of("bills", 2))
        await_value(lambda: not errors(connector), WAIT_S, lambda: str(errors(connector)))
        await_value(lambda: not connector.troubles.now, WAIT_S, lambda: str(connector.troubles.now))
        await_value(lambda: not not_committed(connector), WAIT_S, lambda: "still refused")
    assert sum(said in line for line in caplog.messages) == 1
    assert "group g1: B takes its offsets again" in caplog.messages


def not_committed(connector: CheckpointConnector) -> int:
    of = Flow(Alias("A"), Alias("B")), ConnectorName("any")
    return connector.meter.reading(of, None, 0.0).not_committed


def test_a_topic_that_is_missing_on_the_target_keeps_no_other_back(pair: Pair) -> None:
    _, target = pair
    target.call(lambda: target.cluster.delete("A.bills"))
    for topic in TOPICS:
        commit(pair[0], "g1", 100, "", topic=topic)
    with running(pair):
        await_committed(target, "g1", *of("orders", 1))
