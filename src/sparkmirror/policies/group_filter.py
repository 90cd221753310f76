"""Which consumer groups the user wants: MirrorCheckpointConnector's filter, and any other's shape."""

from collections.abc import Sequence
from typing import Protocol

from sparkmirror.policies.name_lists import NameLists


class GroupFilter(Protocol):
    """MM2's plug-in point `group.filter.class`."""

    def should_replicate(self, group: str) -> bool:
        """Whether the user wants this group's offsets on the target."""
        ...

    def refused_by(self, group: str) -> str | None:
        """The setting that keeps the group away, None if it's wanted."""
        ...


class DefaultGroupFilter:
    """By two lists of Java regexes over whole ids (KIP-382). Raises ConfigError as `NameLists` does."""

    def __init__(self, groups: Sequence[str], groups_exclude: Sequence[str]) -> None:
        self._lists = NameLists("groups", groups, groups_exclude)

    def should_replicate(self, group: str) -> bool:
        return self._lists.selects(group)

    def refused_by(self, group: str) -> str | None:
        return self._lists.refused_by(group)
