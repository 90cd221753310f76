"""Finds out what is replicated into a cluster, as Java's `MirrorClient` does (KIP-382).

Reads topic names and checkpoints only, of Java MirrorMaker 2 or of sparkmirror.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from sparkmirror.config.client_layers import mirror_client
from sparkmirror.config.plugin_points import REPLICATION_POLICY
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.policies.replication import NO_HOPS, hops, sources
from sparkmirror.storage.checkpoint_topic import read_checkpoints


class OffsetAndMetadata(NamedTuple):
    """The offset from which a group continues, and the metadata that it committed with it."""

    offset: int
    metadata: str


class MirrorClient:
    """Reads from one cluster. A context manager; for one thread at a time.

    `properties` are those of Java's `MirrorClientConfig`: `bootstrap.servers`, `security.protocol`, `ssl.*`,
    `sasl.*`, `replication.policy.*`, with `source.cluster.alias` for policies that need it; `admin.` and
    `consumer.` in front make one count for that client only. Raises ConfigError for unusable ones.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        settings = Properties({key: value for key, value in properties.items() if value is not None})
        self.policy = REPLICATION_POLICY.make(settings)
        self._admin_settings = mirror_client(settings, "admin")
        self._consumer_settings = mirror_client(settings, "consumer")
        self._admin: Admin | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def replication_hops(self, upstream_cluster: str) -> int:
        """The number of replications from a cluster to this one, by its heartbeats; -1 without any."""
        counts = [hops(self.policy, topic, upstream_cluster) for topic in self.heartbeat_topics()]
        return min((count for count in counts if count != NO_HOPS), default=NO_HOPS)

    def heartbeat_topics(self) -> set[str]:
        """Return this cluster's own heartbeats topic, and replicated ones."""
        return {topic for topic in self._topics() if self.policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        return {topic for topic in self._topics() if self.policy.is_checkpoints_topic(topic)}

    def upstream_clusters(self) -> set[str]:
        """The clusters whose heartbeats arrive here, directly or over others."""
        return {source for topic in self.heartbeat_topics() for source in sources(self.policy, topic)}

    def remote_topics(self, source: str | None = None) -> set[str]:
        """The topics that were replicated into this cluster; only those from `source`, if given."""
        found = {topic: self.policy.topic_source(topic) for topic in self._topics()}
        return {
            topic
            for topic, origin in found.items()
            if origin is not None and not self.policy.is_internal_topic(topic) and source in (None, origin)
        }

    def remote_consumer_offsets(
        self, group: str, remote_cluster: str, timeout_s: float = 30.0
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """A group's offsets translated to this cluster, by its last checkpoints; empty without any.

        Raises RetriableError when the checkpoints can't be read to their end in time.
        """
        return self.remote_offsets_of([group], remote_cluster, timeout_s)[group]

    def remote_offsets_of(
        self, groups: Collection[str] | re.Pattern[str], remote_cluster: str, timeout_s: float = 30.0
    ) -> Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]:
        """The same for several groups in one pass: those named, or all whose whole name a pattern matches.

        A pattern as in Java's batch translation (KIP-1239, Kafka 4.3).
        """
        named = () if isinstance(groups, re.Pattern) else groups
        found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {group: {} for group in named}
        topic = self.policy.checkpoints_topic(remote_cluster)
        for checkpoint in read_checkpoints(self._consumer_settings, topic, deadline_s=timeout_s):
            group = checkpoint.group
            if group in found or (isinstance(groups, re.Pattern) and groups.fullmatch(group)):
                offset = OffsetAndMetadata(checkpoint.downstream_offset, checkpoint.metadata or "")
                found.setdefault(group, {})[checkpoint.topic_partition] = offset
        return found

    def read(self, topic: str, timeout_s: float = 30.0) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of one of MM2's topics up to its end; absent ones are empty."""
        for record in read_topic(self._consumer_settings, topic, deadline_s=timeout_s):
            yield record.key or b"", record.value or b""

    def _topics(self) -> Collection[str]:
        self._admin = self._admin or Admin(self._admin_settings)
        return self._admin.partition_counts()
