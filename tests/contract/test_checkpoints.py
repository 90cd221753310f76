"""The checkpoint connector without a mirror: syncs written by hand, groups that commit by another client."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.log_records import LogRecord
from sparkmirror.domain.wire_records import Checkpoint, OffsetSync
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.runtime.checkpoints import Checkpoints
from sparkmirror.runtime.flow_settings import flow_settings
from sparkmirror.storage.offset_syncs import RunSync
from tests.contract.copying import connection
from tests.system.broker_data import append, latest, numbered
from tests.system.mirror import REPLICATION, await_value
from tests.system.mixed_data import create_topic

TOPIC: Final = "contract.checkpointed"
REMOTE: Final = f"cp.{TOPIC}"
SYNCS: Final = "mm2-offset-syncs.there.internal"
CHECKPOINTS: Final = "cp.checkpoints.internal"
AHEAD: Final = 1000
"""By so much the target's offsets are higher."""
WAIT_S: Final = 20.0


@pytest.fixture(scope="module")
def sides(source_cluster: LocalCluster, target_cluster: LocalCluster) -> tuple[LocalCluster, LocalCluster]:
    create_topic(source_cluster.bootstrap_servers, TOPIC)
    append(source_cluster, TOPIC, numbered(100))
    create_topic(source_cluster.bootstrap_servers, SYNCS, config={"cleanup.policy": "compact"})
    create_topic(target_cluster.bootstrap_servers, REMOTE)
    append(target_cluster, REMOTE, numbered(AHEAD + 100))
    sync(source_cluster, 10, 70, 99)
    return source_cluster, target_cluster


def sync(cluster: LocalCluster, *offsets: int) -> None:
    syncs = [OffsetSync(TopicPartition(TOPIC, 0), offset, AHEAD + offset) for offset in offsets]
    writer = TopicWriter(connection(cluster))
    writer.write(SYNCS, [LogRecord(one.encode_key(), one.encode_value()) for one in syncs])
    writer.close()


def commit(cluster: LocalCluster, group: str, topic: str, offset: int, metadata: str = "") -> None:
    with consuming(cluster, group) as consumer:
        position = confluent.TopicPartition(topic, 0, offset, metadata)
        consumer.commit(offsets=[position], asynchronous=False)


@contextmanager
def consuming(cluster: LocalCluster, group: str) -> Iterator[confluent.Consumer]:
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def committed(cluster: LocalCluster, group: str) -> int:
    with consuming(cluster, group) as consumer:
        (position,) = consumer.committed([confluent.TopicPartition(REMOTE, 0)], timeout=WAIT_S)
        return int(position.offset)


def await_offset(cluster: LocalCluster, group: str, offset: int) -> None:
    await_value(lambda: committed(cluster, group) >= 0, WAIT_S, lambda: f"{group} has no offset")
    assert committed(cluster, group) == offset


def checkpoints(cluster: LocalCluster) -> Mapping[GroupId, Checkpoint]:
    decoded = [
        Checkpoint.decode(key or b"", value or b"") for key, value in latest(cluster, CHECKPOINTS).items()
    ]
    return {checkpoint.group: checkpoint for checkpoint in decoded}


@contextmanager
def running(sides: tuple[LocalCluster, LocalCluster], **settings: str) -> Iterator[Checkpoints]:
    source, target = sides
    told = {
        "clusters": "cp, there",
        "cp.bootstrap.servers": source.bootstrap_servers,
        "there.bootstrap.servers": target.bootstrap_servers,
        "cp->there.enabled": "true",
        "topics": "contract.checkpointed",
        "groups": "contract-cp-.*",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        **REPLICATION,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    (flow,) = (flow for flow in MirrorMakerConfig(Properties(told)).flows() if flow.flow.source == "cp")
    made = flow_settings(flow)
    assert made.checkpoint is not None
    connector = Checkpoints(made, made.checkpoint)
    connector.thread.start()
    try:
        yield connector
    finally:
        connector.thread.stop()
        assert connector.thread.join(WAIT_S)


def test_groups_go_on_at_what_they_have_read(sides: tuple[LocalCluster, LocalCluster]) -> None:
    source, target = sides
    for group, offset in (("exact", 70), ("between", 85), ("end", 100), ("old", 5)):
        commit(source, f"contract-cp-{group}", TOPIC, offset, f"{group}'s own")
    commit(source, "contract-other", TOPIC, 40)
    with running(sides):
        expected = {"exact": (70, 1070), "between": (85, 1071), "end": (100, 1100)}
        await_value(lambda: len(checkpoints(target)) >= len(expected), WAIT_S, lambda: "no checkpoints")
        for group, (_, offset) in expected.items():
            await_offset(target, f"contract-cp-{group}", offset)
    found = checkpoints(target)
    assert {group.removeprefix("contract-cp-") for group in found} == set(expected)
    for group, checkpoint in found.items():  # confluent-kafka commits C's closing NUL with the metadata
        name = group.removeprefix("contract-cp-")
        assert checkpoint == Checkpoint(
            group, TopicPartition(REMOTE, 0), *expected[name], metadata=f"{name}'s own\0"
        )
    assert committed(target, "contract-cp-old") < 0


def test_inside_a_run_that_a_sync_speaks_for_every_offset_is_exact(
    sides: tuple[LocalCluster, LocalCluster],
) -> None:
    source, target = sides
    newest = RunSync(OffsetSync(TopicPartition(TOPIC, 0), 99, AHEAD + 99), 60)
    writer = TopicWriter(connection(source))
    writer.write(SYNCS, [newest.to_record()])
    writer.close()
    group = GroupId("contract-cp-inside")
    commit(source, group, TOPIC, 57)
    with running(sides):
        await_value(lambda: group in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    assert checkpoints(target)[group].downstream_offset == AHEAD + 57


def test_a_group_on_the_target_is_moved_forward_only_and_not_while_it_has_members(
    sides: tuple[LocalCluster, LocalCluster],
) -> None:
    source, target = sides
    groups = [f"contract-cp-{name}" for name in ("ahead", "active", "behind")]
    for group in groups:
        commit(source, group, TOPIC, 99)
    commit(target, groups[0], REMOTE, 1100)
    commit(target, groups[1], REMOTE, 1001)
    commit(target, groups[2], REMOTE, 1001)
    with consuming(target, groups[1]) as member:
        member.subscribe([REMOTE])
        await_value(lambda: bool(member.consume(1, 0.5)), WAIT_S, lambda: "the member gets no record")
        with running(sides):
            await_value(lambda: committed(target, groups[2]) == 1099, WAIT_S, lambda: "behind stays behind")
        member.unsubscribe()
    assert [committed(target, group) for group in groups] == [1100, 1001, 1099]


def test_a_later_life_sends_no_group_back(sides: tuple[LocalCluster, LocalCluster]) -> None:
    """Although it finds fewer syncs than the one before had: those between were compacted, say."""
    source, target = sides
    group = GroupId("contract-cp-later")
    sync(source, 60, 99)
    commit(source, group, TOPIC, 60)
    with running(sides):
        await_value(lambda: group in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    first = checkpoints(target)[group]
    assert first.downstream_offset == 1060
    commit(source, group, TOPIC, 80)
    sync(source, 0, 100)  # a step back: what was before does not count any more
    marker = GroupId("contract-cp-marker")
    commit(source, marker, TOPIC, 100)
    with running(sides):
        await_value(lambda: marker in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    assert checkpoints(target)[group] == first
