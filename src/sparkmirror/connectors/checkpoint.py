"""What MirrorCheckpointConnector is told, and which translated offsets of a group it emits. Runs nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.domain.checkpoints import target_topic
from sparkmirror.domain.group_filter import DefaultGroupFilter
from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.domain.policies import ReplicationPolicy
from sparkmirror.domain.sync_history import BEFORE_HISTORY, SyncHistory
from sparkmirror.domain.topic_filter import TopicFilter
from sparkmirror.domain.wire_records import Checkpoint


@dataclass(frozen=True, slots=True)
class MirrorCheckpointSettings:
    """A MirrorCheckpointConnector's settings as values; an interval of None turns its job off."""

    flow: Flow
    policy: ReplicationPolicy
    group_filter: DefaultGroupFilter
    topic_filter: TopicFilter
    checkpoints_topic: str
    checkpoints_replication_factor: int
    offset_syncs_topic: str
    refresh_groups_interval_s: float | None
    emit_checkpoints_interval_s: float
    sync_group_offsets_interval_s: float | None


def checkpoints_of(
    settings: MirrorCheckpointSettings,
    group: GroupId,
    committed: Mapping[TopicPartition, tuple[int, str]],
    histories: Mapping[TopicPartition, SyncHistory],
) -> Iterator[Checkpoint]:
    """Where a group stands on the target, for each partition that the flow mirrors and whose syncs can tell.

    `committed` are offsets and metadata on the source. A partition without a sync, or with an offset older
    than all of them, is left out.
    """
    for (topic, partition), (offset, metadata) in committed.items():
        history = histories.get(TopicPartition(topic, partition))
        if history is None or not settings.topic_filter.should_replicate(topic):
            continue
        translated = history.translate(offset)
        if translated != BEFORE_HISTORY:
            there = TopicPartition(target_topic(settings.policy, settings.flow, topic), partition)
            yield Checkpoint(group, there, offset, translated, metadata)
