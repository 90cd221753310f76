"""Selects topics and consumer groups by two lists of Java regexes; excludes win (KIP-382)."""

import re
import string
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from sparkmirror.policies.java_regex import compile_list, compile_names

DEFAULT_TOPICS: Final = (".*",)
DEFAULT_TOPICS_EXCLUDE: Final = (r"mm2.*\.internal", r".*\.replica", "__.*")
"""Since KIP-1074: user topics that end in `.internal` or `-internal` are no longer excluded."""


class TopicFilter(Protocol):
    """MM2's plug-in point `topic.filter.class`."""

    def should_replicate(self, topic: str) -> bool:
        """Whether the user wants this topic, named as on the source cluster."""
        ...

    def refused_by(self, topic: str) -> str | None:
        """The setting that excludes the topic; None if it is selected."""
        ...


class GroupFilter(Protocol):
    """MM2's plug-in point `group.filter.class`."""

    def should_replicate(self, group: str) -> bool:
        """Whether the user wants this group's offsets on the target."""
        ...

    def refused_by(self, group: str) -> str | None:
        """The setting that excludes the group; None if it is selected."""
        ...


_NAME: Final = re.compile(r"[a-zA-Z0-9._-]*[a-zA-Z0-9][a-zA-Z0-9._-]*")


_LEGAL: Final = frozenset(string.ascii_letters + string.digits + "._-")
_TOKEN: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{[^}]*\}|.", re.DOTALL)


def illegal_character(name: str) -> str | None:
    """Return a character of a name that no topic's name has; None if there is none."""
    return next((each for each in name if each not in _LEGAL), None)


def impossible_character(pattern: str) -> str | None:
    """Return a character that every match of a pattern has and no topic's name has; None if none is seen."""
    if any(part in pattern for part in ("|", "(", "\\Q")):
        return None
    tokens: list[str] = _TOKEN.findall(pattern)
    for token, following in zip(tokens, (*tokens[1:], ""), strict=False):
        literal = token[1:] if token[0] == "\\" and not token[1:].isalnum() else token
        is_literal = len(literal) == 1 and (token[0] == "\\" or literal not in ".^$*+?[]{}")
        is_optional = following.startswith(("*", "?", "{0"))
        if is_literal and literal not in _LEGAL and not is_optional:
            return literal
    return None


class NameLists:
    """Selects names by `topics` and `topics.exclude`, or the like; an empty list selects none.

    Raises ConfigError for a pattern that can't be used.
    """

    def __init__(self, key: str, included: Sequence[str], excluded: Sequence[str]) -> None:
        """`key` is the first list's; the second's has `.exclude` behind it."""
        self._key = key
        self._exclude_key = f"{key}.exclude"
        self._includes = included
        self._excludes = excluded
        self._included = compile_names(included, self._key)
        self._excluded = compile_names(excluded, self._exclude_key)

    @property
    def named(self) -> frozenset[str]:
        """The literal names in the first list: such a pattern matches itself, at least."""
        return frozenset(
            name for name in self._includes if _NAME.fullmatch(name) and self.should_replicate(name)
        )

    def matching_none(self, names: Iterable[str]) -> Sequence[str]:
        """The patterns of the first list, but for literal names, that match none of these."""
        return [
            pattern
            for pattern in self._includes
            if not _NAME.fullmatch(pattern)
            and not any(map(compile_list([pattern], self._key).fullmatch, names))
        ]

    def should_replicate(self, name: str) -> bool:
        return self._included.fullmatch(name) and not self._excluded.fullmatch(name)

    def refused_by(self, name: str) -> str | None:
        """The setting that excludes the name, with its pattern if there is one; None if it is selected."""
        if self._excluded.fullmatch(name):
            pattern = next(
                (one for one in self._excludes if compile_list([one], self._exclude_key).fullmatch(name)), ""
            )
            return f"{self._exclude_key} ({pattern})"
        return None if self._included.fullmatch(name) else self._key


class DefaultTopicFilter(NameLists):
    """Selects topics by two lists of Java regexes over whole names."""

    def __init__(
        self, topics: Sequence[str] = DEFAULT_TOPICS, topics_exclude: Sequence[str] = DEFAULT_TOPICS_EXCLUDE
    ) -> None:
        self.topics = tuple(topics)
        super().__init__("topics", topics, topics_exclude)


class DefaultGroupFilter(NameLists):
    """Selects groups by two lists of Java regexes over whole ids."""

    def __init__(self, groups: Sequence[str], groups_exclude: Sequence[str]) -> None:
        super().__init__("groups", groups, groups_exclude)
