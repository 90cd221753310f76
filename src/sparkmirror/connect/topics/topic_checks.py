"""Checks that Connect's three topics, where they exist, are compacted and have the right partitions."""

from sparkmirror.config.worker_settings import WorkerSettings
from sparkmirror.domain.errors import UnfitTopicError
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.storage.topic_creation import (
    require_compacted,
)


def check_connect_topics(admin: Admin, worker: WorkerSettings) -> None:
    """Raise UnfitTopicError with Java's message for a topic that would lose records or mix up their order.

    Topics that don't exist are skipped. Raises KafkaError.
    """
    purposes = {
        "offset.storage.topic": (worker.offset_topic.name, "source connector offsets"),
        "status.storage.topic": (worker.status_topic.name, "connector and task statuses"),
        "config.storage.topic": (worker.config_topic.name, "connector configurations"),
    }
    counts = admin.partition_counts()
    for key, (topic, purpose) in purposes.items():
        if topic in counts:
            require_compacted(admin, key, topic, purpose)
    count = counts.get(worker.config_topic.name, 1)
    if count > 1:
        raise _unfit(
            "config.storage.topic",
            worker.config_topic.name,
            "have a single partition in order to guarantee consistency of connector configurations, but found"
            f" {count} partitions.",
        )


def _unfit(key: str, topic: str, requirement: str) -> UnfitTopicError:
    reason = f"Topic '{topic}' supplied via the '{key}' property is required to {requirement}"
    return UnfitTopicError(key, topic, reason)
