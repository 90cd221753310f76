"""Holds a cluster's listing of its topics."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class ListedTopic(NamedTuple):
    """`topic_id` is empty where brokers tell none (KIP-516); `error` is 0 or Kafka's code."""

    partitions: int
    topic_id: bytes = b""
    is_internal: bool = False
    error: int = 0


@dataclass(frozen=True)
class TopicListing:
    """One response. It lacks topics that the principal may not describe."""

    topics: Mapping[str, ListedTopic]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Partitions of every topic that isn't internal to the brokers, and of which they can tell."""
        return {
            name: topic.partitions
            for name, topic in self.topics.items()
            if not (topic.error or topic.is_internal)
        }
