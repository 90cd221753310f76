"""Positions, offset syncs and heartbeats that a stopped mirror leaves for its next run and for Java MM2."""

import json
import struct
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import config, keyed, latest, records
from tests.support.waiting import await_value, patience
from tests.system import dual_run
from tests.system.dual_run import Mirrored, position_key

Records = Mapping[tuple[int, int], confluent.Message]
"""Records by partition and offset."""


def test_an_orderly_stop_leaves_the_last_offset_of_every_partition(mirrored: Mirrored) -> None:
    expected = {
        position_key(partition): b'{"offset":%d}' % (end - 1)
        for partition, end in mirrored.first_run.ends.items()
        if end
    }
    stored = mirrored.first_run.positions
    assert {key: stored.get(key) for key in expected} == expected


def test_positions_are_in_the_partitions_that_java_chooses(mirrored: Mirrored) -> None:
    """Keys must be in the partitions that Java chooses, as only records of one partition keep their order."""
    placed: dict[bytes | None, set[int | None]] = {}
    for record in records(mirrored.sides.target, "mm2-offsets.A.internal"):
        placed.setdefault(record.key(), set()).add(record.partition())
    moved = [key for key in placed if key and json.loads(key)[1]["topic"] == dual_run.BIG_BATCH]
    # These were first written with Java's partitioner by another client.
    assert len(moved) == 2
    assert all(len(partitions) == 1 for partitions in placed.values())


def test_position_keys_contain_the_connector_name_of_mm2(mirrored: Mirrored) -> None:
    for key in latest(mirrored.sides.target, "mm2-offsets.A.internal"):
        assert key is not None
        name, source = json.loads(key)
        assert name == "MirrorSourceConnector"
        assert list(source) == ["cluster", "partition", "topic"]


@pytest.mark.parametrize(
    ("prefix", "topics", "syncs_on_source", "syncs_topic"),
    [
        ("A.", dual_run.MIXED, True, "mm2-offset-syncs.B.internal"),
        ("rc_", dual_run.COMMITTED, False, "mm2-offset-syncs_rc_internal"),
    ],
)
def test_offset_syncs_have_the_offsets_of_the_same_record(
    mirrored: Mirrored, prefix: str, topics: tuple[str, ...], syncs_on_source: bool, syncs_topic: str
) -> None:
    source, target = mirrored.sides
    syncs = list(offset_syncs(source if syncs_on_source else target, syncs_topic))
    assert {partition.topic for partition, _, _ in syncs} >= set(topics)
    for topic in topics:
        there, here = by_offset(source, topic), by_offset(target, f"{prefix}{topic}")
        for partition, upstream, downstream in syncs:
            if partition.topic == topic:
                original = there[partition.partition, upstream]
                copy = here[partition.partition, downstream]
                assert (original.key(), original.value()) == (copy.key(), copy.value())


def test_an_orderly_stop_leaves_a_sync_for_the_last_record(mirrored: Mirrored) -> None:
    newest = {
        partition: downstream
        for partition, _, downstream in offset_syncs(mirrored.sides.source, "mm2-offset-syncs.B.internal")
    }
    for partition in range(3):
        # The second run adds records to partitions 0 and 1 only and still runs.
        last = max(
            offset for at, offset in by_offset(mirrored.sides.target, "A.mixed.codecs") if at == partition
        )
        written_since = 70 if partition < 2 else 0
        assert newest[TopicPartition("mixed.codecs", partition)] >= last - written_since


def test_heartbeats_are_emitted_every_second_in_mm2s_format(mirrored: Mirrored) -> None:
    key = b"\x00\x01A\x00\x01B"
    beats = await_value(lambda: at_least(6, mirrored.sides.target, key), 15, lambda: "too few heartbeats")
    newest = beats[-5:]
    sent_ms = []
    for beat in newest:
        version, timestamp_ms = struct.unpack(">hq", beat.value() or b"")
        assert version == 0
        assert beat.timestamp() == (confluent.TIMESTAMP_CREATE_TIME, timestamp_ms)
        sent_ms.append(timestamp_ms)
    gaps = [later - earlier for earlier, later in pairwise(sent_ms)]
    assert all(700 < gap < 2000 * patience() for gap in gaps), gaps
    assert abs(time.time() * 1000 - sent_ms[-1]) < 30_000


def at_least(count: int, cluster: LocalCluster, key: bytes) -> list[confluent.Message] | None:
    beats = [record for record in records(cluster, "heartbeats") if record.key() == key]
    return beats if len(beats) >= count else None


def test_heartbeats_of_the_opposite_flow_are_replicated(mirrored: Mirrored) -> None:
    replicated = set(latest(mirrored.sides.target, "A.heartbeats"))
    assert replicated == {b"\x00\x01B\x00\x01A"}


def test_heartbeats_are_replicated_only_where_enabled(mirrored: Mirrored) -> None:
    # `tuned` and `late` have heartbeats.replication.enabled=false; `rc` has another separator.
    assert not keyed(mirrored.sides.target, "tuned.heartbeats")
    assert not keyed(mirrored.sides.target, "late.heartbeats")
    assert keyed(mirrored.sides.target, "rc_heartbeats")


@pytest.mark.parametrize("alias", ["A", "rc", "tuned", "late"])
def test_internal_topics_are_compacted(mirrored: Mirrored, alias: str) -> None:
    for kind in ("offsets", "progress"):
        assert config(mirrored.sides.target, f"mm2-{kind}.{alias}.internal")["cleanup.policy"] == "compact"


def offset_syncs(cluster: LocalCluster, topic: str) -> Iterator[tuple[TopicPartition, int, int]]:
    """Decode offset syncs independently: topic and partition, upstream offset, downstream offset."""
    for key, value in keyed(cluster, topic):
        assert key is not None
        assert value is not None
        (length,) = struct.unpack_from(">h", key)
        (partition,) = struct.unpack_from(">i", key, 2 + length)
        upstream, downstream = struct.unpack(">qq", value)
        yield TopicPartition(key[2 : 2 + length].decode(), partition), upstream, downstream


def by_offset(cluster: LocalCluster, topic: str) -> Records:
    found = {}
    for record in records(cluster, topic):
        partition, offset = record.partition(), record.offset()
        assert partition is not None
        assert offset is not None
        found[partition, offset] = record
    return found
