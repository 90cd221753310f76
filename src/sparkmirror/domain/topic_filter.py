"""Which topics the user wants: the default filter of MirrorSourceConnector and the shape of any other."""

from collections.abc import Sequence
from typing import Final, Protocol

from sparkmirror.domain.java_regex import compile_list

DEFAULT_TOPICS: Final = (".*",)
DEFAULT_TOPICS_EXCLUDE: Final = (r"mm2.*\.internal", r".*\.replica", "__.*")
"""Since KIP-1074: user topics that end in `.internal` or `-internal` are no longer excluded."""


class TopicFilter(Protocol):
    """MM2's plug-in point `topic.filter.class`."""

    def should_replicate(self, topic: str) -> bool:
        """Whether the user wants this topic, named as on the source cluster."""
        ...


class DefaultTopicFilter:
    """Two lists of Java regexes over whole names: excludes win, an empty list matches nothing (KIP-382).

    Raises ConfigError for a pattern that can't be used.
    """

    def __init__(
        self, topics: Sequence[str] = DEFAULT_TOPICS, topics_exclude: Sequence[str] = DEFAULT_TOPICS_EXCLUDE
    ) -> None:
        self._included = compile_list(topics, "topics")
        self._excluded = compile_list(topics_exclude, "topics.exclude")

    def should_replicate(self, topic: str) -> bool:
        return bool(self._included.fullmatch(topic)) and not self._excluded.fullmatch(topic)
