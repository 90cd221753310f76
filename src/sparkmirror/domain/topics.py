"""Represents topics as brokers list, describe, create and alter them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple


class ListedTopic(NamedTuple):
    """`topic_id` is empty where brokers tell none (KIP-516); `error` is 0 or Kafka's code."""

    partitions: int
    topic_id: bytes = b""
    is_internal: bool = False
    error: int = 0


@dataclass(frozen=True)
class TopicListing:
    """A response's topics. It lacks those that the principal may not describe."""

    topics: Mapping[str, ListedTopic]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Partitions of every topic that isn't internal to the brokers, and of which they can tell."""
        return {
            name: topic.partitions
            for name, topic in self.topics.items()
            if not (topic.error or topic.is_internal)
        }


NO_TOPICS: Final = TopicListing({})


@dataclass(frozen=True, slots=True)
class TopicCreation:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class ConfigSource(IntEnum):
    """The source of a config's value; numbers as in DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config of a topic as DescribeConfigs returns it; a sensitive one has no value."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.DYNAMIC_TOPIC_CONFIG
    is_read_only: bool = False
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        """Whether this is Kafka's own default; a broker's setting, static or dynamic, is not."""
        return self.source is ConfigSource.DEFAULT_CONFIG


def topics_with(configs: Mapping[str, Sequence[ConfigEntry]], name: str, value: str) -> set[str]:
    """The topics whose config `name` is `value`, or has it in its list."""
    return {
        topic
        for topic, entries in configs.items()
        if any(entry.name == name and value in (entry.value or "").split(",") for entry in entries)
    }


class AlterConfigOpType(IntEnum):
    """Numbers as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """An operation of IncrementalAlterConfigs; DELETE has no value."""

    name: str
    op: AlterConfigOpType
    value: str | None = None
