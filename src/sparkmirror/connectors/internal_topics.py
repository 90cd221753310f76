"""Lists and creates the internal topics of MM2 and Connect; existing topics stay as they are."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.connectors.flow_settings import (
    CheckpointConfig,
    FlowWorker,
    HeartbeatConfig,
    SourceConfig,
)
from sparkmirror.connectors.periodic import Job
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, TopicExistsError, UnfitTopicError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.incidents import OnBadBatch
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.policies.admin_writes import AdminWrites
from sparkmirror.storage.attempts import attempts_topic
from sparkmirror.storage.dead_letters import dead_letters_topic
from sparkmirror.storage.events import CONFIGS as EVENTS
from sparkmirror.storage.events import events_topic
from sparkmirror.storage.producer_id_topic import PRODUCER_IDS_TOPIC
from sparkmirror.storage.progress import progress_topic
from sparkmirror.storage.synced_acls import synced_acls_topic

_log = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"
COMPACTED: Final = {_POLICY: "compact"}
_DENIED_RETRY_S: Final = 60.0


class Ensured(NamedTuple):
    """Names of topics that were not there, and of those among them that may not be created."""

    missing: frozenset[str]
    denied: frozenset[str]


NOT_TRIED: Final = Ensured(frozenset(), frozenset())


class OwnTopicCreation:
    """Creates a topic of a connector, at its start and again where that was denied. One owner. Blocks."""

    def __init__(self, topic: "OwnTopic", admin: ConnectionSettings, plugins: AdminPlugins) -> None:
        self._topic = topic
        self._admin = admin
        self._plugins = plugins
        self.result = NOT_TRIED

    def create(self) -> None:
        """Raises KafkaError."""
        with closing(Admin(self._admin)) as admin:
            writes = self._plugins.over(admin, self._topic.cluster)
            self.result = ensure_topics(admin, [self._topic.creation], writes, before=self.result)

    def create_denied(self) -> None:
        if self.result.denied:
            self.create()


def creating_again(create: Callable[[], None]) -> Job:
    """The job of a connector that creates denied topics: who gives the right need not restart the mirror."""
    return Job("create denied topics", _DENIED_RETRY_S, create, _DENIED_RETRY_S)


def ensure_topics(
    admin: Admin,
    topics: Iterable[TopicCreation],
    through: AdminWrites | None = None,
    *,
    before: Ensured = NOT_TRIED,
) -> Ensured:
    """Create those that are missing. Raises KafkaError for the first that fails.

    They are created `through` the writer for this cluster, by default the admin client itself.
    A missing right is no error, as in MM2: the topic may exist, or be created by hand. It is told unless it
    was denied `before`.
    """
    existing = admin.partition_counts()
    missing = [topic for topic in topics if topic.name not in existing]
    denied = set()
    for name, error in (through or admin).create_topics(missing).items():
        if isinstance(error, AuthorizationError):
            denied.add(name)
            if name not in before.denied:
                _log.warning("not created, give the right or create it by hand: %s", error)
        elif error is not None and not isinstance(error, TopicExistsError):
            raise error
        elif error is None:
            _log.info("created %s on %s", name, admin.cluster)
    return Ensured(frozenset(topic.name for topic in missing), frozenset(denied))


def require_compacted(admin: Admin, key: str, topic: str, purpose: str) -> None:
    """Raise UnfitTopicError, as Connect refuses to start, for a topic from which records may expire.

    `key` is the setting that names the topic, `purpose` what is kept there. A missing right to read the
    policy is no error. Raises KafkaError.
    """
    try:
        found = admin.topic_configs([topic], [_POLICY]).get(topic, ())
    except AuthorizationError as error:
        _log.info("%s: %s=compact could not be checked: %s", topic, _POLICY, error)
        return
    for entry in found:
        policies = {policy.strip().lower() for policy in (entry.value or "").split(",")} - {""}
        if entry.name == _POLICY and policies and policies != {"compact"}:
            now = f"{_POLICY}={','.join(sorted(policies))}"
            raise UnfitTopicError(
                key,
                topic,
                f"Topic '{topic}' supplied via the '{key}' property is required to have '{_POLICY}=compact'"
                f" to guarantee consistency and durability of {purpose}, but found the topic currently has"
                f" '{now}' on {admin.cluster}. Continuing would likely result"
                f" in eventually losing {purpose} and problems restarting this Connect cluster in the future."
                f" Change the '{key}' property in the Connect worker configurations to use a topic with"
                f" '{_POLICY}=compact', or make this one compact: kafka-configs.sh --bootstrap-server"
                f" {admin.bootstrap_servers} --alter --entity-type topics --entity-name {topic}"
                f" --add-config {_POLICY}=compact",
            )


_SEGMENT_BYTES: Final = "16777216"
"""Positions are rewritten each second; with small segments compaction keeps the topic quick to read."""


class OwnTopic(NamedTuple):
    """An internal topic and the cluster that it is on.

    `replicas_setting` is the option for its replication factor; `is_read`: the mirror reads it back;
    `is_needed`: it can't do without.
    """

    cluster: Alias
    creation: TopicCreation
    replicas_setting: str
    is_read: bool = True
    is_needed: bool = True


def topics_on_target(on: FlowWorker, connector: SourceConfig) -> Sequence[TopicCreation]:
    """A MirrorSourceConnector's positions, progress, attempts and events; others if it needs them."""
    positions, source = on.worker.offset_topic, on.flow.source
    replicas = positions.replication_factor
    small = {"segment.bytes": _SEGMENT_BYTES}
    topics = [
        TopicCreation(positions.name, positions.partitions, replicas, {**small, **dict(positions.configs)}),
        TopicCreation(progress_topic(source), 1, replicas, {**small, **COMPACTED}),
        TopicCreation(attempts_topic(source), 1, replicas, {**small, **COMPACTED}),
        TopicCreation(events_topic(source), 1, replicas, EVENTS),
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
    settings = connector.settings
    if settings.offset_syncs_topic is None:
        return None
    side = on.flow.source if settings.offset_syncs_on_source else on.flow.target
    syncs = TopicCreation(settings.offset_syncs_topic, 1, settings.offset_syncs_replication_factor, COMPACTED)
    return OwnTopic(side, syncs, "offset-syncs.topic.replication.factor", is_read=False)


def checkpoints_topic(flow: Flow, connector: CheckpointConfig) -> OwnTopic:
    settings = connector.settings
    topic = TopicCreation(settings.checkpoints_topic, 1, settings.checkpoints_replication_factor, COMPACTED)
    return OwnTopic(flow.target, topic, "checkpoints.topic.replication.factor")


def heartbeats_topic(flow: Flow, connector: HeartbeatConfig) -> OwnTopic:
    settings = connector.settings
    topic = TopicCreation(settings.topic, 1, settings.replication_factor, COMPACTED)
    return OwnTopic(flow.target, topic, "heartbeats.topic.replication.factor", is_read=False)


def own_topics(flow: FlowWorker, source: SourceConfig) -> Sequence[OwnTopic]:
    """All of a MirrorSourceConnector's."""
    setting = "offset.storage.replication.factor"
    syncs = offset_syncs_topic(flow, source)
    alias = flow.flow.source
    spared, unread = (attempts_topic(alias), events_topic(alias)), events_topic(alias)
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
