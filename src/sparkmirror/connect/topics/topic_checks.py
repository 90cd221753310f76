"""Checks that Connect's three topics, where they exist, are compacted and have the right partitions."""

import logging
from typing import Final

from sparkmirror.config.worker import WorkerSettings
from sparkmirror.domain.errors import AuthorizationError, ConfigError
from sparkmirror.kafka.admin import Admin

_log = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"


def check_connect_topics(admin: Admin, worker: WorkerSettings) -> None:
    """Raise ConfigError with Java's message for a topic that would lose records or mix up their order.

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
            _check_policy(admin, key, topic, purpose)
    count = counts.get(worker.config_topic.name, 1)
    if count > 1:
        raise _unfit(
            "config.storage.topic",
            worker.config_topic.name,
            "have a single partition in order to guarantee consistency of connector configurations, but found"
            f" {count} partitions.",
        )


def _check_policy(admin: Admin, key: str, topic: str, purpose: str) -> None:
    try:
        found = admin.topic_configs([topic], [_POLICY]).get(topic, ())
    except AuthorizationError as error:
        _log.info("%s: %s=compact could not be checked: %s", topic, _POLICY, error)
        return
    for entry in found:
        policies = {policy.strip().lower() for policy in (entry.value or "").split(",")} - {""}
        if entry.name == _POLICY and policies and policies != {"compact"}:
            raise _unfit(
                key,
                topic,
                f"have '{_POLICY}=compact' to guarantee consistency and durability of {purpose}, but found"
                f" the topic currently has '{_POLICY}={','.join(sorted(policies))}'. Continuing would likely"
                f" result in eventually losing {purpose} and problems restarting this Connect cluster in the"
                f" future. Change the '{key}' property in the Connect worker configurations to use a topic"
                f" with '{_POLICY}=compact'.",
            )


def _unfit(key: str, topic: str, requirement: str) -> ConfigError:
    reason = f"Topic '{topic}' supplied via the '{key}' property is required to {requirement}"
    return ConfigError(key, topic, reason)
