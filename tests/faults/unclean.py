"""Elects a leader that lacks records which were acknowledged, and finds out which."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sparkmirror.batches.log_records import decode_log_batch
from sparkmirror.batches.record_batch import CONTROL, FetchedBatch, iterate_batches
from sparkmirror.domain.ids import TopicPartition
from tests.faults.numbered import FRAIL_REPLICAS
from tests.faults.numbered_verdict import Election
from tests.faults.side import WAIT_S, Side
from tests.support.broker_data import configure
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

_UNCLEAN: Final = "unclean.leader.election.enable"
_LOST_MIN: Final = 20


def elect_unclean(
    side: Side, partition: TopicPartition, copied: TopicPartition, meanwhile: Callable[[], None]
) -> Election:
    """Let a follower miss records, kill the leader, let the follower lead; then the leader comes back.

    `partition` is the side's; `copied` is the source's name of it. `meanwhile` is called between both.
    Nothing else fails at the same time.
    """
    leader = side.leader_of(partition)
    (follower,) = set(FRAIL_REPLICAS[partition.partition]) - {leader}
    side.cluster.kill_broker(follower)
    await_value(lambda: side.in_sync(partition) == [leader], WAIT_S, lambda: f"{side.in_sync(partition)}")
    _await_growth(side, partition, _LOST_MIN)
    configure(side.cluster, partition.topic, {_UNCLEAN: "true"})
    meanwhile()
    side.cluster.kill_broker(leader)
    brokers = side.cluster.brokers
    lost = _lost(brokers[leader].data, brokers[follower].data, partition)
    side.start(follower)
    await_value(lambda: side.leader_of(partition) == follower, WAIT_S, lambda: f"{partition} has no leader")
    _await_growth(side, partition, 1)
    configure(side.cluster, partition.topic, {_UNCLEAN: None})
    side.start(leader)
    return Election(side.name, copied, lost)


def _await_growth(side: Side, partition: TopicPartition, records: int) -> None:
    with TopicReader(side.cluster.bootstrap_servers, partition.topic) as reader:
        _, before = reader.offsets(partition.partition)
        await_value(
            lambda: reader.offsets(partition.partition)[1] >= before + records,
            WAIT_S,
            lambda: f"{partition} stays at {reader.offsets(partition.partition)}, was at {before}",
        )


def _lost(leader: Path, follower: Path, partition: TopicPartition) -> Mapping[int, int]:
    """The numbers that only the leader has, by their offsets; both brokers are dead."""
    led, followed = ([*_batches(data, partition)] for data in (leader, follower))
    end = max((batch.header.last_offset + 1 for batch in followed), default=0)
    return {
        record.offset: int(record.value or b"-1")
        for batch in led
        if batch.header.last_offset >= end and not batch.header.attributes & CONTROL
        for record in decode_log_batch(batch, partition.partition)
    }


def _batches(data: Path, partition: TopicPartition) -> list[FetchedBatch]:
    segments = sorted((data / f"{partition.topic}-{partition.partition}").glob("*.log"))
    return [batch for log in segments for batch in iterate_batches(memoryview(bytearray(log.read_bytes())))]
