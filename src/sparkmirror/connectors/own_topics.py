"""The topics that a flow's connectors keep for themselves: `run` creates them, `plan` tells of them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sparkmirror.connectors.flow_settings import (
    CheckpointConfig,
    FlowWorker,
    HeartbeatConfig,
    SourceConfig,
)
from sparkmirror.connectors.internal_topics import COMPACTED
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.incidents import OnBadBatch
from sparkmirror.policies.admin_writes import TopicCreation
from sparkmirror.storage.dead_letters import dead_letters_topic
from sparkmirror.storage.producer_ids import PRODUCER_IDS_TOPIC
from sparkmirror.storage.progress import progress_topic
from sparkmirror.storage.synced_acls import synced_acls_topic

_SEGMENT_BYTES: Final = "16777216"
"""Positions are rewritten each second: small segments let compaction keep the topic quick to read."""


class OwnTopic(NamedTuple):
    """A topic that the mirror keeps for itself, and the cluster that it is on.

    `replicas_setting` says how many replicas it gets, `is_read` whether the mirror reads what it wrote.
    """

    cluster: Alias
    creation: TopicCreation
    replicas_setting: str
    is_read: bool = True


def topics_on_target(on: FlowWorker, connector: SourceConfig) -> Sequence[TopicCreation]:
    """A MirrorSourceConnector's positions and progress, dead letters and producer ids if it keeps any."""
    positions, source = on.worker.offset_topic, on.flow.source
    replicas = positions.replication_factor
    small = {"segment.bytes": _SEGMENT_BYTES}
    topics = [
        TopicCreation(positions.name, positions.partitions, replicas, {**small, **dict(positions.configs)}),
        TopicCreation(progress_topic(source), 1, replicas, {**small, **COMPACTED}),
    ]
    if connector.settings.copying.reactions.on_bad_batch is OnBadBatch.SKIP:
        topics.append(TopicCreation(dead_letters_topic(source), 1, replicas, COMPACTED))
    if connector.settings.sync_acls_delete:
        topics.append(TopicCreation(synced_acls_topic(source), 1, replicas, COMPACTED))
    if not connector.settings.names_show_origin:
        topics.append(TopicCreation(PRODUCER_IDS_TOPIC, 1, replicas, COMPACTED))
    return topics


def offset_syncs_topic(on: FlowWorker, connector: SourceConfig) -> OwnTopic | None:
    """None where no offset syncs are emitted."""
    told = connector.settings
    if told.offset_syncs_topic is None:
        return None
    side = on.flow.source if told.offset_syncs_on_source else on.flow.target
    syncs = TopicCreation(told.offset_syncs_topic, 1, told.offset_syncs_replication_factor, COMPACTED)
    return OwnTopic(side, syncs, "offset-syncs.topic.replication.factor", is_read=False)


def checkpoints_topic(flow: Flow, connector: CheckpointConfig) -> OwnTopic:
    told = connector.settings
    topic = TopicCreation(told.checkpoints_topic, 1, told.checkpoints_replication_factor, COMPACTED)
    return OwnTopic(flow.target, topic, "checkpoints.topic.replication.factor")


def heartbeats_topic(flow: Flow, connector: HeartbeatConfig) -> OwnTopic:
    told = connector.settings
    topic = TopicCreation(told.topic, 1, told.replication_factor, COMPACTED)
    return OwnTopic(flow.target, topic, "heartbeats.topic.replication.factor", is_read=False)


def own_topics(flow: FlowWorker, source: SourceConfig) -> Sequence[OwnTopic]:
    """All of a MirrorSourceConnector's."""
    setting = "offset.storage.replication.factor"
    syncs = offset_syncs_topic(flow, source)
    on_target = [OwnTopic(flow.flow.target, topic, setting) for topic in topics_on_target(flow, source)]
    return on_target if syncs is None else [*on_target, syncs]
