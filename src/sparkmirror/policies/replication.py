"""Replication policies: how topics are named on the target and which topics belong to MM2 itself.

The classes behave as Kafka 4.3's of the same names, KIP-1074's rules for internal topics included.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

_HEARTBEATS: Final = "heartbeats"


class ReplicationPolicy(Protocol):
    """MM2's plug-in point `replication.policy.class`."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The target's name for a topic of that source cluster."""
        ...

    def topic_source(self, topic: str) -> str | None:
        """The cluster a topic was replicated from, None if it is no remote topic."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """The topic's name on the cluster it was replicated from, None if it is no remote topic."""
        ...

    def original_topic(self, topic: str) -> str:
        """The topic's first name, before any replication."""
        ...

    def heartbeats_topic(self) -> str:
        """The topic that heartbeats are emitted to."""
        ...

    def offset_syncs_topic(self, other_alias: str) -> str:
        """The offset-syncs topic, named after the cluster that it is not stored on."""
        ...

    def checkpoints_topic(self, source_alias: str) -> str:
        """The checkpoints topic for groups of that source cluster."""
        ...

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether this is the heartbeats topic of this cluster or a replica of another's."""
        ...

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether this is a checkpoints topic of any source cluster."""
        ...

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether MM2 keeps its own state there."""
        ...

    def is_internal_topic(self, topic: str) -> bool:
        """Whether this belongs to MM2 or Kafka and is never replicated."""
        ...


class EmptyAliases:
    """Another policy, asked by the names that clusters are shown by where their aliases are empty."""

    def __init__(self, policy: ReplicationPolicy, empty: Collection[str]) -> None:
        """`empty` are the names of clusters whose alias is empty."""
        self._policy = policy
        self._empty = frozenset(empty)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self._policy.format_remote_topic(self._alias(source_alias), topic)

    def topic_source(self, topic: str) -> str | None:
        """Quotes another policy of that name: no topic comes from a cluster whose alias is empty."""
        found = self._policy.topic_source(topic)
        return f"'{found}'" if found in self._empty else found

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self._policy.offset_syncs_topic(self._alias(other_alias))

    def checkpoints_topic(self, source_alias: str) -> str:
        return self._policy.checkpoints_topic(self._alias(source_alias))

    def upstream_topic(self, topic: str) -> str | None:
        return self._policy.upstream_topic(topic)

    def original_topic(self, topic: str) -> str:
        return self._policy.original_topic(topic)

    def heartbeats_topic(self) -> str:
        return self._policy.heartbeats_topic()

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self._policy.is_heartbeats_topic(topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        return self._policy.is_checkpoints_topic(topic)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        return self._policy.is_mm2_internal_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        return self._policy.is_internal_topic(topic)

    def _alias(self, name: str) -> str:
        return "" if name in self._empty else name


class RoutedPolicy(EmptyAliases):
    """Another policy, whose names on the target are changed by routers (`RegexRouter`), but for heartbeats.

    A name on the target does not show where it came from.
    """

    def __init__(self, policy: ReplicationPolicy, route: Callable[[str], str]) -> None:
        super().__init__(policy, ())
        self._route = route

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        name = self.unrouted(source_alias, topic)
        return name if self.is_heartbeats_topic(topic) else self._route(name)

    def unrouted(self, source_alias: str, topic: str) -> str:
        """The name that the routers change."""
        return super().format_remote_topic(source_alias, topic)


@dataclass(frozen=True)
class DefaultReplicationPolicy:
    """Puts the source's alias and a separator in front: `orders` of `us` becomes `us.orders`."""

    separator: str = "."
    internal_topic_separator_enabled: bool = True
    """False names internal topics with dots whatever the separator is (KIP-949)."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        parts = self._split(topic)
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def heartbeats_topic(self) -> str:
        return _HEARTBEATS

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self._internal("mm2-offset-syncs", other_alias, "internal")

    def checkpoints_topic(self, source_alias: str) -> str:
        return self._internal(source_alias, "checkpoints", "internal")

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal("", "checkpoints", "internal"))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        state = topic.startswith("mm2") and topic.endswith(self._internal("", "internal"))
        return state or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic)

    def _internal(self, *parts: str) -> str:
        return (self.separator if self.internal_topic_separator_enabled else ".").join(parts)

    # As Pattern.split does: empty parts at the end don't count, so `b.` is no remote topic.
    def _split(self, topic: str) -> list[str]:
        if not self.separator:
            return list(topic)
        parts = topic.split(self.separator)
        while parts and not parts[-1]:
            parts.pop()
        return parts


@dataclass(frozen=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps topic names (KAFKA-9726); only names that end in `heartbeats` follow the default policy.

    Cycles can't be seen by name, so replication must be acyclic.
    """

    source_alias: str | None = None

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if _looks_like_heartbeat(topic):
            return DefaultReplicationPolicy.format_remote_topic(self, source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        if _looks_like_heartbeat(topic):
            return DefaultReplicationPolicy.topic_source(self, topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        if _looks_like_heartbeat(topic):
            return DefaultReplicationPolicy.upstream_topic(self, topic)
        return topic


@dataclass(frozen=True)
class CustomMM2ReplicationPolicy(DefaultReplicationPolicy):
    """The policy of AWS's MSK migration samples: keeps every topic name, heartbeats too."""

    source_alias: str = ""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:  # noqa: ARG002 - the policy's contract
        return topic

    def topic_source(self, topic: str) -> str | None:  # noqa: ARG002 - the policy's contract
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:  # noqa: ARG002 - the policy's contract
        return None


def _looks_like_heartbeat(topic: str) -> bool:
    return topic.endswith(_HEARTBEATS)


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether a topic's name shows that it came from, or through, the target cluster."""
    for here in trail(policy, topic):
        source = policy.topic_source(here)
        if source is None:
            return False
        if source == target_alias:
            return True
    return False


def trail(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """Yield a topic's name here, and on each cluster that it came through by its name, the nearest first."""
    seen: set[str] = set()  # a policy may name a topic as its own upstream, directly or in a round
    here: str | None = topic
    while here is not None and here not in seen:
        seen.add(here)
        yield here
        here = policy.upstream_topic(here)


NO_HOPS = -1


def sources(policy: ReplicationPolicy, topic: str) -> list[str]:
    """The clusters that a topic came through by its name, the nearest first (Java's `MirrorClient`).

    Ends where a name repeats: under an Identity policy every topic is its source's.
    """
    found: list[str] = []
    here: str | None = topic
    while here is not None:
        source = policy.topic_source(here)
        if source is None or source in found:
            break
        found.append(source)
        here = policy.upstream_topic(here)
    return found


def hops(policy: ReplicationPolicy, topic: str, alias: str) -> int:
    """The number of replications from the cluster to here; NO_HOPS if the topic has not come from it."""
    found = sources(policy, topic)
    return found.index(alias) + 1 if alias in found else NO_HOPS
