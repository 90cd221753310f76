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
from sparkmirror.storage.own_topics import OwnTopic
from sparkmirror.storage.topic_creation import COMPACTED

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
    copying = connector.settings.copying
    tolerates = copying.transforms is not None and copying.transforms.tolerates
    if tolerates or copying.reactions.on_bad_batch is OnBadBatch.SKIP:
        topics.append(TopicCreation(StateTopic.DEAD_LETTERS.of(source), 1, replicas, COMPACTED))
    if connector.settings.sync_acls_delete:
        topics.append(TopicCreation(StateTopic.ACLS.of(source), 1, replicas, COMPACTED))
    if not connector.settings.names_show_origin:
        topics.append(TopicCreation(PRODUCER_IDS_TOPIC, 1, replicas, COMPACTED))
    return topics


def clusters_topic(on: FlowWorker) -> OwnTopic:
    """Return the topic in which a connector without a source connector remembers its clusters."""
    topic = TopicCreation(
        StateTopic.ATTEMPTS.of(on.flow.source),
        1,
        on.worker.offset_topic.replication_factor,
        {"segment.bytes": _SEGMENT_BYTES, **COMPACTED},
    )
    remade = "the ids of the clusters are written again"
    key = "offset.storage.replication.factor"
    unless = "without it a restart does not know which clusters are meant"
    return OwnTopic(on.flow.target, topic, key, takes_default=True, when_remade=remade, unless=unless)


def offset_syncs_topic(on: FlowWorker, connector: ConfiguredSource) -> OwnTopic | None:
    """Return None where no offset syncs are emitted."""
    settings = connector.settings
    if settings.offset_syncs_topic is None:
        return None
    side = on.flow.source if settings.offset_syncs_on_source else on.flow.target
    syncs = TopicCreation(settings.offset_syncs_topic, 1, settings.offset_syncs_replication_factor, COMPACTED)
    remade = "groups are translated by what is copied from now on"
    key = "offset-syncs.topic.replication.factor"
    return OwnTopic(side, syncs, key, is_read=False, when_remade=remade)


def checkpoints_topic(flow: Flow, connector: ConfiguredCheckpoint) -> OwnTopic:
    settings = connector.settings
    topic = TopicCreation(settings.checkpoints_topic, 1, settings.checkpoints_replication_factor, COMPACTED)
    remade = "the last checkpoints are written again"
    return OwnTopic(flow.target, topic, "checkpoints.topic.replication.factor", when_remade=remade)


def heartbeats_topic(flow: Flow, connector: ConfiguredHeartbeat) -> OwnTopic | None:
    """Return None where no heartbeats are emitted."""
    settings = connector.settings
    if not settings.emit:
        return None
    topic = TopicCreation(settings.topic, 1, settings.replication_factor, COMPACTED)
    remade = "heartbeats begin again"
    key = "heartbeats.topic.replication.factor"
    return OwnTopic(flow.target, topic, key, is_read=False, when_remade=remade, unless=heartbeats_off(flow))


def heartbeats_off(flow: Flow) -> str:
    """Return what to do if heartbeats can't be written."""
    return f"heartbeats need CREATE and WRITE there, or {flow}.emit.heartbeats.enabled=false"


def own_topics(flow: FlowWorker, source: ConfiguredSource) -> Sequence[OwnTopic]:
    """Return all internal topics of a MirrorSourceConnector."""
    syncs = offset_syncs_topic(flow, source)
    on_target = own_topics_on_target(flow, source)
    return on_target if syncs is None else [*on_target, syncs]


def own_topics_on_target(flow: FlowWorker, source: ConfiguredSource) -> Sequence[OwnTopic]:
    """Return those of a MirrorSourceConnector but for offset syncs, which may be on the source."""
    alias, positions = flow.flow.source, flow.worker.offset_topic.name
    needed = (positions, StateTopic.PROGRESS.of(alias), PRODUCER_IDS_TOPIC)
    remade = {
        positions: "the positions of all partitions are written again, as the tasks have them",
        StateTopic.PROGRESS.of(alias): "a new copy job is announced there",
        StateTopic.ATTEMPTS.of(alias): "each partition records a new attempt",
        StateTopic.EVENTS.of(alias): "the list of events begins again",
        StateTopic.DEAD_LETTERS.of(alias): "records that were skipped before are named in the log only",
        StateTopic.ACLS.of(alias): "ACLs that were synced before are no longer deleted with their source's",
        PRODUCER_IDS_TOPIC: "producer ids are recorded again",
    }
    return [
        OwnTopic(
            flow.flow.target,
            topic,
            "offset.storage.replication.factor",
            is_read=topic.name != StateTopic.EVENTS.of(alias),
            is_needed=topic.name in needed,
            takes_default=topic.name != positions,
            when_remade=remade[topic.name],
        )
        for topic in topics_on_target(flow, source)
    ]
