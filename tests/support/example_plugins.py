"""Defines plug-ins as users may write them, found as `tests.support.example_plugins:NAME`."""

import re
import sys
from collections.abc import Mapping

from sparkmirror.plugins import (
    AdminWrites,
    ConfigError,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    ForwardingAdmin,
    ReplicationPolicy,
    Results,
    TopicCreation,
)

NOT_A_CLASS = "Suffixed"


class Suffixed(DefaultReplicationPolicy):
    """`orders` of `us` becomes `orders-of-us`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(properties)
        self.infix = properties.get("replication.policy.infix", "-of-")

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}{self.infix}{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        head, _, source = topic.rpartition(self.infix)
        return source if head else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition(self.infix)[0] or None

    class Nested(DefaultReplicationPolicy):
        pass


class AsItIs(DefaultReplicationPolicy):
    """A plug-in without settings and constructor."""

    def is_internal_topic(self, topic: str) -> bool:
        return topic.startswith("private.") or super().is_internal_topic(topic)


class OnlyDeclared(ReplicationPolicy):
    def heartbeats_topic(self) -> str:
        return "heartbeats"


class Raising(DefaultReplicationPolicy):
    def topic_source(self, topic: str) -> str | None:  # noqa: ARG002
        raise LookupError("no such\ntopic")


class Exiting(DefaultReplicationPolicy):
    def topic_source(self, topic: str) -> str | None:  # noqa: ARG002
        sys.exit(3)


class Numbering(DefaultReplicationPolicy):
    def checkpoints_topic(self, source_alias: str) -> str:  # noqa: ARG002
        return 7  # type: ignore[return-value]  # what a checker would have said


class ForOneArgument(DefaultReplicationPolicy):
    def format_remote_topic(self, topic: str) -> str:  # type: ignore[override]  # likewise
        return topic


class Unmakeable(DefaultReplicationPolicy):
    def __init__(self) -> None:
        super().__init__({})


class Asking(DefaultReplicationPolicy):
    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(properties)
        if "acme.key" not in properties:
            raise ConfigError("acme.key", None, "is missing")


class ShortNames(DefaultTopicFilter):
    def should_replicate(self, topic: str) -> bool:
        return super().should_replicate(topic) and len(topic) < 8


class Matching:
    def __init__(self, properties: Mapping[str, str]) -> None:
        self._pattern = re.compile(properties["topics"])

    def should_replicate(self, topic: str) -> bool:
        return self._pattern.match(topic)  # type: ignore[return-value]  # a common mistake


class Initials:
    """A topic filter, a group filter, and one of config properties."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._initial = properties.get("acme.initial", "a")

    def should_replicate(self, name: str) -> bool:
        return name.startswith(self._initial)

    def should_replicate_config_property(self, name: str) -> bool:
        return name.startswith(self._initial)

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002
        return False


class Deaf(ForwardingAdmin):
    """Returns no results."""

    def create_topics(self, topics: list[TopicCreation]) -> Results:  # type: ignore[override]  # noqa: ARG002
        return {}

    def grow_topics(self, counts: Mapping[str, int]) -> Results:  # noqa: ARG002
        raise OSError("control plane is away")


class Choosy(ForwardingAdmin):
    def __init__(self, properties: Mapping[str, str], delegate: AdminWrites, cluster: str) -> None:
        super().__init__(properties, delegate, cluster)
        self.url = properties["control.plane.url"]


class OfOneArgument(ForwardingAdmin):
    def __init__(self, properties: Mapping[str, str]) -> None:
        raise NotImplementedError


class NoSubclass:
    """Implements every method without the base class."""


def untouched(records: object) -> object:
    """A function of transforms."""
    return records
