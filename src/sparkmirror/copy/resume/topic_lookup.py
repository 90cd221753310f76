"""Looks up the topics of both clusters, and where partitions start that do not start at their position."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.partition_events import ResumeReason
from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import UNKNOWN_LOGS, LogIdentity, TopicPartition, is_another
from sparkmirror.domain.incidents import OnTopicRecreated
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, list_offsets, reset_offsets
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.settings.copy_partition import CopyPartition


class Topics(NamedTuple):
    """The metadata of both clusters, and the identity of each source partition's logs, as they are now.

    `positions_id` is that of the topic of positions, empty where it can't be told.
    """

    source: Metadata
    target: Metadata
    logs: Mapping[TopicPartition, LogIdentity]
    positions_id: bytes


def read_topics(plan: TaskPlan, partitions: Collection[CopyPartition]) -> Topics:
    """Read the topics of these partitions of the plan. Blocks. Raises KafkaError."""
    source = read_metadata(plan.consumer.connection, {each.source.topic for each in partitions})
    positions = plan.state.positions_topic
    target = read_metadata(plan.producer.connection, {positions, *(each.target_topic for each in partitions)})
    logs = {
        each.source: LogIdentity(
            source_id=source.topic_ids.get(each.source.topic, b""),
            target_id=target.topic_ids.get(each.target_topic, b""),
        )
        for each in partitions
    }
    return Topics(source, target, logs, target.topic_ids.get(positions, b""))


def positions_id(plan: TaskPlan) -> bytes:
    """The identity of the topic of positions as it is now. Blocks. Raises KafkaError."""
    topic = plan.state.positions_topic
    return read_metadata(plan.producer.connection, {topic}).topic_ids.get(topic, b"")


def first_offsets(
    plan: TaskPlan, reasons: Mapping[TopicPartition, ResumeReason], topics: Topics
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """Find the first offset of each source partition that does not start at its position.

    Blocks. Raises KafkaError.
    """
    logs, policy = topics.logs, plan.consumer.offset_reset
    restarts = plan.settings.reactions.on_topic_recreated is OnTopicRecreated.RESTART
    new = {partition.source for partition in plan.partitions if partition.is_new}
    reset: list[TopicPartition] = []
    from_start: list[TopicPartition] = []
    gone: dict[TopicPartition, int] = {}
    for source, reason in reasons.items():
        known = UNKNOWN_LOGS if reason.position is None else reason.position.logs
        source_is_new = is_another(known.source_id, logs[source].source_id)
        target_is_new = is_another(known.target_id, logs[source].target_id)
        if source_is_new or (reason.position is None and source in new):
            from_start.append(source)
        elif reason.position is None:
            reset.append(source)
        elif target_is_new:
            if restarts and policy not in (
                OffsetReset.LATEST,
                OffsetReset.TIME,
            ):  # which would leave out what was not copied
                reset.append(source)
        elif reason.is_gone:
            gone[source] = reason.position.offset + 1
    at_start = list_offsets(plan.consumer, from_start, EARLIEST, topics.source)
    still_there = _offsets_behind(plan.consumer, gone, topics.source)
    return {**_reset_offsets(plan.consumer, reset, topics.source), **at_start, **still_there}


def _offsets_behind(
    consumer: ConsumerSettings, gone: Mapping[TopicPartition, int], metadata: Metadata
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The offsets where partitions continue whose next offset is out of range.

    After retention that is the log's start; where the log ends before it, `auto.offset.reset` decides.
    """
    if consumer.offset_reset is OffsetReset.NONE:
        return _reset_offsets(consumer, gone, metadata)
    starts = list_offsets(consumer, gone, EARLIEST, metadata)
    truncated = [at for at, start in starts.items() if isinstance(start, int) and start < gone[at]]
    return {**starts, **_reset_offsets(consumer, truncated, metadata)}


def _reset_offsets(
    consumer: ConsumerSettings, partitions: Collection[TopicPartition], metadata: Metadata
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The offsets where `auto.offset.reset` lets partitions without a position start."""
    policy = consumer.offset_reset
    if policy is OffsetReset.NONE:
        return {
            partition: KafkaError(f"{partition} has no valid position and auto.offset.reset is none")
            for partition in partitions
        }
    return reset_offsets(consumer, partitions, metadata)
