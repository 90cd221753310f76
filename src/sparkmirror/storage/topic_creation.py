"""Creates the internal topics of a Connect worker, and checks those that exist already."""

import logging
from collections.abc import Iterable
from typing import Final

from sparkmirror.domain.errors import AuthorizationError, TopicExistsError, UnfitTopicError
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin

_log = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"
COMPACTED: Final = {_POLICY: "compact"}


def ensure_topics(admin: Admin, topics: Iterable[TopicCreation]) -> None:
    """Create those that are missing. Raises KafkaError for the first that fails.

    A missing right is no error, as in MM2: the topic may exist, or be created by hand.
    """
    existing = admin.partition_counts()
    missing = [topic for topic in topics if topic.name not in existing]
    for name, error in admin.create_topics(missing).items():
        if isinstance(error, AuthorizationError):
            _log.warning("not created, give the right or create it by hand: %s", error)
        elif error is not None and not isinstance(error, TopicExistsError):
            raise error
        elif error is None:
            _log.info("created %s on %s", name, admin.cluster)


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
