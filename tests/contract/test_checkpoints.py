"""The checkpoint connector alone: the tests write offset syncs, and groups commit with another client."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.lag_groups import LAG_METADATA
from sparkmirror.groups.checkpoint_connector import CheckpointConnector
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from sparkmirror.storage.checkpoint_topic import read_checkpoints
from sparkmirror.storage.offset_sync_topic import RunSync
from tests.contract.checkpointing import checkpointing
from tests.contract.streams_member import streaming
from tests.support.batches import NOW_MS
from tests.support.broker_data import append, create_topic, latest, numbered, topics
from tests.support.connections import connection
from tests.support.waiting import await_value

TOPIC: Final = "contract.checkpointed"
REMOTE: Final = f"cp.{TOPIC}"
SYNCS: Final = "mm2-offset-syncs.there.internal"
SYNCS_THERE: Final = "mm2-offset-syncs.cp.internal"
CHECKPOINTS: Final = "cp.checkpoints.internal"
LOOKED_UP: Final = "contract.looked-up"
FROM_THERE: Final = "there.contract-back"
OTHERS: Final = 30
"""The number of records of other producers before the mirrored ones."""
AHEAD: Final = 1000
"""Downstream offset minus upstream offset."""
WAIT_S: Final = 20.0
_NOT_READY: Final = {
    confluent.KafkaError.NOT_COORDINATOR,
    confluent.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}


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
    write_syncs(
        cluster, SYNCS, *(OffsetSync(TopicPartition(TOPIC, 0), offset, AHEAD + offset) for offset in offsets)
    )


def write_syncs(cluster: LocalCluster, topic: str, *syncs: OffsetSync) -> None:
    write(cluster, topic, *(LogRecord(one.encode_key(), one.encode_value()) for one in syncs))


def write(cluster: LocalCluster, topic: str, *records: LogRecord) -> None:
    writer = TopicWriter(connection(cluster))
    writer.write(topic, records)
    writer.close()


def commit(
    cluster: LocalCluster, group: str, topic: str, offset: int, metadata: str = "", *, partition: int = 0
) -> None:
    """Commit an offset, retrying while a new cluster creates the topic of group offsets."""
    position = confluent.TopicPartition(topic, partition, offset, metadata)
    with consuming(cluster, group) as consumer:

        def is_committed() -> bool:
            try:
                return bool(consumer.commit(offsets=[position], asynchronous=False))
            except confluent.KafkaException as error:
                if error.args[0].code() not in _NOT_READY:
                    raise
                return False

        await_value(is_committed, WAIT_S, lambda: f"{group} can't commit")


@contextmanager
def consuming(cluster: LocalCluster, group: str, protocol: str = "classic") -> Iterator[confluent.Consumer]:
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def committed(cluster: LocalCluster, group: str, topic: str = REMOTE) -> int:
    with consuming(cluster, group) as consumer:
        (position,) = consumer.committed([confluent.TopicPartition(topic, 0)], timeout=WAIT_S)
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
def running(sides: tuple[LocalCluster, LocalCluster], **settings: str) -> Iterator[CheckpointConnector]:
    source, target = sides
    properties = {
        "topics": TOPIC,
        "groups": "contract-cp-.*",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    with checkpointing(("cp", source), ("there", target), properties) as connector:
        yield connector


def test_groups_continue_at_their_translated_offsets(sides: tuple[LocalCluster, LocalCluster]) -> None:
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
    for group, checkpoint in found.items():  # confluent-kafka commits C's terminating NUL with the metadata
        name = group.removeprefix("contract-cp-")
        assert checkpoint == Checkpoint(
            group, TopicPartition(REMOTE, 0), *expected[name], metadata=f"{name}'s own\0"
        )
    assert committed(target, "contract-cp-old") < 0


def test_a_group_that_shows_a_mirrors_lag_is_left_alone(
    sides: tuple[LocalCluster, LocalCluster], caplog: pytest.LogCaptureFixture
) -> None:
    source, target = sides
    group = GroupId("contract-cp-lag")
    with closing(Groups(connection(source))) as groups:
        assert not groups.write(group, {TopicPartition(TOPIC, 0): Committed(70, LAG_METADATA)})
    commit(source, "contract-cp-beside", TOPIC, 70)
    caplog.set_level(logging.INFO)
    with running(sides):
        await_offset(target, "contract-cp-beside", 1070)
    assert group not in checkpoints(target)
    assert "group contract-cp-lag: shows a mirror's lag (lag.group.id): left alone" in caplog.messages


def test_offsets_inside_a_run_are_translated_exactly(
    sides: tuple[LocalCluster, LocalCluster],
) -> None:
    source, target = sides
    write(source, SYNCS, RunSync(OffsetSync(TopicPartition(TOPIC, 0), 99, AHEAD + 99), 60).to_record())
    group = GroupId("contract-cp-inside")
    commit(source, group, TOPIC, 57)
    with running(sides):
        await_value(lambda: group in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    assert checkpoints(target)[group].downstream_offset == AHEAD + 57


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_on_the_target_is_moved_forward_only_and_only_while_it_is_empty(
    sides: tuple[LocalCluster, LocalCluster], protocol: str
) -> None:
    source, target = sides
    groups = [f"contract-cp-{name}-{protocol}" for name in ("ahead", "active", "behind")]
    for group in groups:
        commit(source, group, TOPIC, 99)
    commit(target, groups[0], REMOTE, 1100)
    commit(target, groups[1], REMOTE, 1001)
    commit(target, groups[2], REMOTE, 1001)
    with consuming(target, groups[1], protocol) as member:
        member.subscribe([REMOTE])
        await_value(lambda: bool(member.consume(1, 0.5)), WAIT_S, lambda: "the member gets no record")
        with running(sides):
            await_value(lambda: committed(target, groups[2]) == 1099, WAIT_S, lambda: "behind stays behind")
        member.unsubscribe()
    assert [committed(target, group) for group in groups] == [1100, 1001, 1099]


def test_restarted_connector_moves_no_group_back(sides: tuple[LocalCluster, LocalCluster]) -> None:
    """Although it reads fewer offset syncs than its predecessor, for example because of compaction."""
    source, target = sides
    group = GroupId("contract-cp-later")
    sync(source, 60, 99)
    commit(source, group, TOPIC, 60)
    with running(sides):
        await_value(lambda: group in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    first = checkpoints(target)[group]
    assert first.downstream_offset == 1060
    commit(source, group, TOPIC, 80)
    sync(source, 0, 100)  # an older downstream offset invalidates the syncs before it
    marker = GroupId("contract-cp-marker")
    commit(source, marker, TOPIC, 100)
    with running(sides):
        await_value(lambda: marker in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    assert checkpoints(target)[group] == first


def test_idle_group_on_the_target_gets_missing_offsets(sides: tuple[LocalCluster, LocalCluster]) -> None:
    source, target = sides
    create_topic(target.bootstrap_servers, "contract.own-topic")
    group = "contract-cp-known"
    sync(source, 100)
    commit(source, group, TOPIC, 100)
    commit(target, group, "contract.own-topic", 5)
    with running(sides):
        await_offset(target, group, 1100)
    assert committed(target, group, "contract.own-topic") == 5


def test_share_groups_are_logged_and_not_synced(
    sides: tuple[LocalCluster, LocalCluster], caplog: pytest.LogCaptureFixture
) -> None:
    source, target = sides
    here, there, marker = (f"contract-cp-share-{name}" for name in ("here", "there", "marker"))
    sync(source, 100)
    for group in (there, marker):
        commit(source, group, TOPIC, 100)
    caplog.set_level(logging.INFO, "sparkmirror")
    with sharing(source, here, TOPIC), sharing(target, there, REMOTE), running(sides):
        await_offset(target, marker, 1100)
    assert f"group {here}: is a share group: left alone" in caplog.messages
    assert f"group {there}: is a share group on there: left alone there" in caplog.messages
    assert GroupId(there) in checkpoints(target)


@contextmanager
def sharing(cluster: LocalCluster, group: str, topic: str) -> Iterator[None]:
    """Run a share group of one member."""
    with (
        confluent.ShareConsumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0}
        ) as member,
        closing(Groups(connection(cluster, alias="here"))) as groups,
    ):
        member.subscribe([topic])
        member.poll(0.1)
        await_value(lambda: groups.listed().get(GroupId(group)), WAIT_S, lambda: "no share group")
        yield


def test_streams_groups_are_logged_and_not_synced(
    sides: tuple[LocalCluster, LocalCluster], caplog: pytest.LogCaptureFixture
) -> None:
    """Also an empty one, for which the broker would accept commits of any client."""
    source, target = sides
    here, active, idle, marker = (f"contract-cp-streams-{name}" for name in ("here", "active", "idle", "z"))
    sync(source, 100)
    for group in (active, idle, marker):
        commit(source, group, TOPIC, 100)
    caplog.set_level(logging.INFO, "sparkmirror")
    with streaming(target, idle, REMOTE) as member:
        member.commit(REMOTE, 3)
    with streaming(source, here, TOPIC) as member, streaming(target, active, REMOTE):
        member.commit(TOPIC, 100)
        with running(sides):
            await_offset(target, marker, 1100)
        found = committed_by(target, active, idle)
    assert f"group {here}: is a streams group: left alone" in caplog.messages
    for group in (active, idle):
        assert f"group {group}: is a streams group on there: left alone there" in caplog.messages
    assert found == {active: None, idle: 3}
    assert {active, idle} <= checkpoints(target).keys()
    assert here not in checkpoints(target)


def committed_by(cluster: LocalCluster, *groups: str) -> Mapping[str, int | None]:
    """Committed offsets in REMOTE, read without joining the groups."""
    with closing(Groups(connection(cluster, alias="here"))) as asked:
        found = asked.committed([GroupId(group) for group in groups])
    offsets = {}
    for group, each in found.items():
        assert not isinstance(each, KafkaError), each
        offset = each.get(TopicPartition(REMOTE, 0))
        offsets[str(group)] = None if offset is None else offset.offset
    return offsets


def test_offsets_between_two_syncs_are_looked_up_in_the_records(
    sides: tuple[LocalCluster, LocalCluster],
) -> None:
    source, target = sides
    remote = f"cp.{LOOKED_UP}"
    create_topic(source.bootstrap_servers, LOOKED_UP, partitions=2)
    create_topic(target.bootstrap_servers, remote, partitions=2)
    for number in (0, 1):
        write = partial(append, partition=number, timestamp_ms=NOW_MS)
        write(source, LOOKED_UP, numbered(100))
        write(target, remote, numbered(OTHERS, first=1000))
        write(target, remote, numbered(60), settings={"batch.num.messages": "7"})
        write(target, remote, numbered(40, first=60), settings={"compression.type": "lz4"})
        partition = TopicPartition(LOOKED_UP, number)
        write_syncs(source, SYNCS, *(OffsetSync(partition, offset, OTHERS + offset) for offset in (0, 99)))
    moving, still = GroupId("contract-cp-moving"), GroupId("contract-cp-still")
    commit(source, moving, LOOKED_UP, 40)
    # In another partition, because looked-up offsets are shared by all groups of a partition.
    commit(source, still, LOOKED_UP, 40, partition=1)

    def is_at(group: GroupId, offset: int) -> bool:
        found = checkpoints(target).get(group)
        return found is not None and found.downstream_offset == offset

    with running(sides, topics=LOOKED_UP, translation_resolve="active"):
        await_value(lambda: is_at(moving, OTHERS + 1), WAIT_S, lambda: "no checkpoint")
        commit(source, moving, LOOKED_UP, 77)
        await_value(lambda: is_at(moving, OTHERS + 77), WAIT_S, lambda: str(checkpoints(target)[moving]))
        assert is_at(still, OTHERS + 1)
    commit(source, moving, LOOKED_UP, 88)
    # The group has moved while the connector was stopped.
    with running(sides, topics=LOOKED_UP, translation_resolve="active"):
        await_value(lambda: is_at(moving, OTHERS + 88), WAIT_S, lambda: str(checkpoints(target)[moving]))
        assert is_at(still, OTHERS + 1)
    with running(sides, topics=LOOKED_UP):
        await_value(lambda: is_at(still, OTHERS + 40), WAIT_S, lambda: str(checkpoints(target)[still]))


def test_missing_opposite_flow_does_not_prevent_other_checkpoints(
    sides: tuple[LocalCluster, LocalCluster], caplog: pytest.LogCaptureFixture
) -> None:
    source, target = sides
    assert SYNCS_THERE not in topics(target), "a later test creates it"
    group = GroupId("contract-cp-alone")
    sync(source, 100)
    commit(source, group, TOPIC, 100)
    with running(sides, **{"reverse.checkpointing.enabled": "true"}):
        await_value(lambda: group in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    (said,) = (message for message in caplog.messages if SYNCS_THERE in message)
    assert said.endswith("offsets are not translated back before that is there")


def test_groups_are_translated_back_by_offset_syncs_stored_on_the_target(
    sides: tuple[LocalCluster, LocalCluster],
) -> None:
    source, target = sides
    if SYNCS_THERE not in topics(target):
        create_topic(target.bootstrap_servers, SYNCS_THERE, config={"cleanup.policy": "compact"})
    create_topic(source.bootstrap_servers, FROM_THERE)
    write_syncs(target, SYNCS_THERE, OffsetSync(TopicPartition(FROM_THERE, 0), 0, 33))
    group = GroupId("contract-cp-back")
    commit(source, group, FROM_THERE, 0)
    with running(sides, topics=FROM_THERE, **{"offset-syncs.topic.location": "target"}):
        await_value(lambda: group in checkpoints(target), WAIT_S, lambda: "no checkpoint")
    assert checkpoints(target)[group].topic_partition == TopicPartition("contract-back", 0)
    assert checkpoints(target)[group].downstream_offset == 33


@pytest.mark.parametrize("location", ["source", "target"])
def test_groups_of_remote_topics_are_translated_back_by_the_opposite_flows_syncs(
    sides: tuple[LocalCluster, LocalCluster], location: str
) -> None:
    source, target = sides
    back = f"contract.back-{location}"
    create_topic(source.bootstrap_servers, f"there.{back}")
    create_topic(target.bootstrap_servers, back)
    append(target, back, numbered(30))
    if SYNCS_THERE not in topics(target):
        create_topic(target.bootstrap_servers, SYNCS_THERE, config={"cleanup.policy": "compact"})
    holder, topic = (target, SYNCS_THERE) if location == "source" else (source, SYNCS)
    write(holder, topic, RunSync(OffsetSync(TopicPartition(back, 0), 29, 19), 20).to_record())
    group = GroupId(f"contract-cp-back-{location}")
    commit(source, group, f"there.{back}", 7)
    if location == "source":
        marker = GroupId("contract-cp-back-z")
        sync(source, 100)
        commit(source, marker, TOPIC, 100)
        with running(sides):
            await_value(lambda: marker in checkpoints(target), WAIT_S, lambda: "no checkpoint")
        assert group not in checkpoints(target), "as in Java, unless configured otherwise"
    changed = {"offset-syncs.topic.location": location, "reverse.checkpointing.enabled": "true"}
    with running(sides, **changed):
        await_value(lambda: committed(target, group, back) >= 0, WAIT_S, lambda: "no offset")
    assert committed(target, group, back) == 17
    assert checkpoints(target)[group] == Checkpoint(group, TopicPartition(back, 0), 7, 17, "\0")


def test_deleted_checkpoint_is_not_read(
    sides: tuple[LocalCluster, LocalCluster],
) -> None:
    _, target = sides
    topic = "gone.checkpoints.internal"
    create_topic(target.bootstrap_servers, topic, config={"cleanup.policy": "compact"})
    kept, removed = (Checkpoint(GroupId(name), TopicPartition("t", 0), 5, 7, "") for name in ("a", "b"))
    write(target, topic, *(LogRecord(each.encode_key(), each.encode_value()) for each in (removed, kept)))
    write(target, topic, LogRecord(removed.encode_key(), None), LogRecord(b"no checkpoint", b"at all"))
    assert list(read_checkpoints(connection(target), topic)) == [kept]
