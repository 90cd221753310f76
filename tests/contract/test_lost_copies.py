"""Copies and own topics that vanish on the target while nothing is copied to them."""

import re
from contextlib import closing
from typing import Final

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from sparkmirror.storage.checkpoint_topic import read_checkpoints
from tests.contract.checkpointing import checkpointing
from tests.contract.copying import POSITIONS, Bench, ProgressReports, running
from tests.support.broker_data import append, create_topic, delete_topic, numbered, topics
from tests.support.connections import connection
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
SYNCS: Final = "mm2-offset-syncs.lost-there.internal"
CHECKPOINTS: Final = "lost-cp.checkpoints.internal"
COPIED, READ = 100, 60
"""Records of the topic, and how many of them the group has read at the source."""


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    """A topic that was copied, with its sync, and a group in it."""
    name = "lost." + re.sub(r"\W+", "-", request.node.name).strip("-")
    copy = f"lost-cp.{name}"
    for cluster, created in ((bench.source, name), (bench.target, copy)):
        create_topic(cluster.bootstrap_servers, created)
        append(cluster, created, numbered(COPIED))
    if SYNCS not in topics(bench.source):
        create_topic(bench.source.bootstrap_servers, SYNCS, config={"cleanup.policy": "compact"})
    write_sync(bench, name, READ, READ)
    with closing(Groups(connection(bench.source))) as groups:
        groups.write(GroupId(name), {TopicPartition(name, 0): Committed(READ, "")})
    return name


def write_sync(bench: Bench, topic: str, upstream: int, downstream: int) -> None:
    sync = OffsetSync(TopicPartition(topic, 0), upstream, downstream)
    with closing(TopicWriter(connection(bench.source))) as writer:
        writer.write(SYNCS, [LogRecord(sync.encode_key(), sync.encode_value())])


def checkpoint(bench: Bench, topic: str) -> int | None:
    if CHECKPOINTS not in topics(bench.target):
        return None
    found: dict[str, Checkpoint] = {
        each.group: each for each in read_checkpoints(connection(bench.target), CHECKPOINTS)
    }
    return found[topic].downstream_offset if topic in found else None


def written(bench: Bench, topic: str) -> int | None:
    """The group's offset on the target."""
    with closing(Groups(connection(bench.target))) as groups:
        found = groups.committed([GroupId(topic)])[GroupId(topic)]
    assert isinstance(found, dict)
    return found[partition][0] if (partition := TopicPartition(f"lost-cp.{topic}", 0)) in found else None


def test_checkpoints_of_a_lost_log_are_withdrawn_while_its_topic_is_idle(bench: Bench, topic: str) -> None:
    copy = f"lost-cp.{topic}"
    flow = {"topics": topic, "groups": topic, "sync.group.offsets.enabled": "true"}
    flow["sync.group.offsets.interval.seconds"] = "1"
    with checkpointing(("lost-cp", bench.source), ("lost-there", bench.target), flow):
        await_value(lambda: checkpoint(bench, topic) == READ, WAIT_S, lambda: "no checkpoint")
        await_value(lambda: written(bench, topic) == READ, WAIT_S, lambda: "no offset is written")

        delete_topic(bench.target, copy)
        create_topic(bench.target.bootstrap_servers, copy)
        await_value(lambda: checkpoint(bench, topic) == 0, WAIT_S, lambda: f"{checkpoint(bench, topic)}")

        append(bench.target, copy, numbered(4))
        write_sync(bench, topic, COPIED + 3, 3)  # what is copied now
        with closing(Groups(connection(bench.source))) as groups:
            groups.write(GroupId(topic), {TopicPartition(topic, 0): Committed(COPIED + 3, "")})
        await_value(lambda: checkpoint(bench, topic) == 3, WAIT_S, lambda: f"{checkpoint(bench, topic)}")


def test_no_offset_is_written_behind_the_end_of_the_log(bench: Bench, topic: str) -> None:
    """Also after a restart, when only the syncs of the former log are known."""
    copy = f"lost-cp.{topic}"
    delete_topic(bench.target, copy)
    create_topic(bench.target.bootstrap_servers, copy)
    append(bench.target, copy, numbered(READ - 1))
    flow = {"topics": topic, "groups": topic, "sync.group.offsets.enabled": "true"}
    flow["sync.group.offsets.interval.seconds"] = "1"
    with checkpointing(("lost-cp", bench.source), ("lost-there", bench.target), flow) as connector:
        await_value(lambda: connector.meter.reading is not None, WAIT_S, lambda: "nothing is read")
        await_value(lambda: connector.groups == (topic,), WAIT_S, lambda: f"{connector.groups}")
        await_value(lambda: connector.looks._translated is not None, WAIT_S, lambda: "nothing is translated")
        assert (checkpoint(bench, topic), written(bench, topic)) == (None, None)
        append(bench.target, copy, numbered(1))
        await_value(lambda: checkpoint(bench, topic) == READ, WAIT_S, lambda: "no checkpoint")


def test_the_checkpoints_topic_is_created_again_with_the_last_checkpoints(bench: Bench, topic: str) -> None:
    with checkpointing(
        ("lost-cp", bench.source), ("lost-there", bench.target), {"topics": topic, "groups": topic}
    ) as it:
        await_value(lambda: checkpoint(bench, topic) == READ, WAIT_S, lambda: "no checkpoint")
        delete_topic(bench.target, CHECKPOINTS)
        it.thread.hasten("watch own topics", 0.0)
        await_value(lambda: checkpoint(bench, topic) == READ, WAIT_S, lambda: "no checkpoint")


def test_positions_are_written_again_from_memory(bench: Bench, watch: ProgressReports) -> None:
    topic = "lost.positions"
    bench.create(topic)
    partition = TopicPartition(topic, 0)
    expected = bench.source_has(topic, COPIED)
    with running(bench.plan(partition)) as copying:
        bench.await_copied(topic, expected)
        await_value(lambda: bench.position(partition) == COPIED - 1, WAIT_S, lambda: "no position")
        delete_topic(bench.target, POSITIONS)
        create_topic(
            bench.target.bootstrap_servers, POSITIONS, partitions=3, config={"cleanup.policy": "compact"}
        )
        assert bench.position(partition) is None
        copying.forget_stored()
        await_value(lambda: bench.position(partition) == COPIED - 1, WAIT_S, lambda: "no position")
    more = bench.source_has(topic, 5)
    with running(bench.plan(partition)):
        bench.await_copied(topic, more)
