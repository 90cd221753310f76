"""Lists the internal topics that a connector needs, and what each is created with."""

from collections.abc import Sequence
from typing import Final

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.incidents import OnBadBatch
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC, StateTopic
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.settings.configured import (
    ConfiguredCheckpoint,
    ConfiguredHeartbeat,
    ConfiguredSource,
    FlowWorker,
)
from sparkmirror.storage.events import CONFIGS as EVENTS
from sparkmirror.storage.topic_creation import COMPACTED, OwnTopic

_SEGMENT_BYTES: Final = "16777216"
"""Positions are rewritten each second; with small segments compaction keeps the topic quick to read."""


def topics_on_target(on: FlowWorker, connector: ConfiguredSource) -> Sequence[TopicCreation]:
    """A MirrorSourceConnector's positions, progress, attempts and events; others if it needs them."""
    positions, source = on.worker.offset_topic, on.flow.source
    replicas = positions.replication_factor
    small = {"segment.bytes": _SEGMENT_BYTES}
    topics = [
        TopicCreation(positions.name, positions.partitions, replicas, {**small, **dict(positions.configs)}),
        TopicCreation(StateTopic.PROGRESS.of(source), 1, replicas, {**small, **COMPACTED}),
        TopicCreation(StateTopic.ATTEMPTS.of(source), 1, replicas, {**small, **COMPACTED}),
        TopicCreation(StateTopic.EVENTS.of(source), 1, replicas, EVENTS),
    ]
    if connector.settings.copying.reactions.on_bad_batch is OnBadBatch.SKIP:
        topics.append(TopicCreation(StateTopic.DEAD_LETTERS.of(source), 1, replicas, COMPACTED))
    if connector.settings.sync_acls_delete:
        topics.append(TopicCreation(StateTopic.ACLS.of(source), 1, replicas, COMPACTED))
    if not connector.settings.names_show_origin:
        topics.append(TopicCreation(PRODUCER_IDS_TOPIC, 1, replicas, COMPACTED))
    return topics


def offset_syncs_topic(on: FlowWorker, connector: ConfiguredSource) -> OwnTopic | None:
    """Return None where no offset syncs are emitted."""
    settings = connector.settings
    if settings.offset_syncs_topic is None:
        return None
    side = on.flow.source if settings.offset_syncs_on_source else on.flow.target
    syncs = TopicCreation(settings.offset_syncs_topic, 1, settings.offset_syncs_replication_factor, COMPACTED)
    return OwnTopic(side, syncs, "offset-syncs.topic.replication.factor", is_read=False)


def checkpoints_topic(flow: Flow, connector: ConfiguredCheckpoint) -> OwnTopic:
    settings = connector.settings
    topic = TopicCreation(settings.checkpoints_topic, 1, settings.checkpoints_replication_factor, COMPACTED)
    return OwnTopic(flow.target, topic, "checkpoints.topic.replication.factor")


def heartbeats_topic(flow: Flow, connector: ConfiguredHeartbeat) -> OwnTopic:
    settings = connector.settings
    topic = TopicCreation(settings.topic, 1, settings.replication_factor, COMPACTED)
    return OwnTopic(flow.target, topic, "heartbeats.topic.replication.factor", is_read=False)


def own_topics(flow: FlowWorker, source: ConfiguredSource) -> Sequence[OwnTopic]:
    """Return all internal topics of a MirrorSourceConnector."""
    setting = "offset.storage.replication.factor"
    syncs = offset_syncs_topic(flow, source)
    alias = flow.flow.source
    spared, unread = (StateTopic.ATTEMPTS.of(alias), StateTopic.EVENTS.of(alias)), StateTopic.EVENTS.of(alias)
    on_target = [
        OwnTopic(
            flow.flow.target,
            topic,
            setting,
            is_read=topic.name != unread,
            is_needed=topic.name not in spared,
        )
        for topic in topics_on_target(flow, source)
    ]
    return on_target if syncs is None else [*on_target, syncs]
