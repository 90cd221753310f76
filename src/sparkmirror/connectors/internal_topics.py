"""Creates the topics that MM2 and Connect keep for themselves, and leaves existing ones alone."""

import logging
from collections.abc import Iterable

from sparkmirror.domain.errors import AuthorizationError, TopicExistsError
from sparkmirror.kafka.admin import Admin
from sparkmirror.policies.admin_writes import AdminWrites, TopicCreation

_log = logging.getLogger(__name__)

COMPACTED = {"cleanup.policy": "compact"}


def ensure_topics(
    admin: Admin, topics: Iterable[TopicCreation], through: AdminWrites | None = None
) -> set[str]:
    """The names of those that were not there. Raises KafkaError for the first that can't be created.

    They are created `through` what writes to this cluster, by the admin itself unless somebody else does.
    A missing right is no error, as in MM2: the topic may exist, or be made by hand.
    """
    existing = admin.partition_counts()
    missing = [topic for topic in topics if topic.name not in existing]
    for name, error in (through or admin).create_topics(missing).items():
        if isinstance(error, AuthorizationError):
            _log.warning("somebody else must create it: %s", error)
        elif error is not None and not isinstance(error, TopicExistsError):
            raise error
        elif error is None:
            _log.info("created %s", name)
    return {topic.name for topic in missing}
