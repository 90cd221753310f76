"""Which topics the user wants: the default filter of MirrorSourceConnector and the shape of any other."""

from collections.abc import Sequence
from typing import Final, Protocol

from sparkmirror.policies.name_lists import NameLists

DEFAULT_TOPICS: Final = (".*",)
DEFAULT_TOPICS_EXCLUDE: Final = (r"mm2.*\.internal", r".*\.replica", "__.*")
"""Since KIP-1074: user topics that end in `.internal` or `-internal` are no longer excluded."""


class TopicFilter(Protocol):
    """MM2's plug-in point `topic.filter.class`."""

    def should_replicate(self, topic: str) -> bool:
        """Whether the user wants this topic, named as on the source cluster."""
        ...

    def refused_by(self, topic: str) -> str | None:
        """The setting that keeps the topic away, None if it's wanted."""
        ...


class DefaultTopicFilter:
    """By two lists of Java regexes over whole names (KIP-382). Raises ConfigError as `NameLists` does."""

    def __init__(
        self, topics: Sequence[str] = DEFAULT_TOPICS, topics_exclude: Sequence[str] = DEFAULT_TOPICS_EXCLUDE
    ) -> None:
        self.topics = tuple(topics)
        self._lists = NameLists("topics", topics, topics_exclude)

    @property
    def named(self) -> frozenset[str]:
        """The topics that are asked for by their names, whether they exist or not."""
        return self._lists.named

    def should_replicate(self, topic: str) -> bool:
        return self._lists.selects(topic)

    def refused_by(self, topic: str) -> str | None:
        return self._lists.refused_by(topic)
