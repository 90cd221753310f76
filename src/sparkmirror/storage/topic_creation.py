"""Creates the internal topics of MM2 and Connect; existing topics stay as they are."""

import logging
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Final, NamedTuple

from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, TopicExistsError, UnfitTopicError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.periodic.jobs import Job
from sparkmirror.policies.admin_writes import AdminWrites

_log = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"
COMPACTED: Final = {_POLICY: "compact"}
_DENIED_RETRY_S: Final = 60.0


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


class Ensured(NamedTuple):
    """Names of topics that were not there, and of those among them that may not be created."""

    missing: frozenset[str]
    denied: frozenset[str]


NOT_TRIED: Final = Ensured(frozenset(), frozenset())


class OwnTopicCreation:
    """Creates a topic of a connector, at its start and again where that was denied. One owner. Blocks."""

    def __init__(self, topic: OwnTopic, admin: ConnectionSettings, plugins: AdminPlugins) -> None:
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
