"""Which consumer groups the user wants: the default filter of MirrorCheckpointConnector."""

from collections.abc import Sequence

from sparkmirror.domain.java_regex import compile_list


class DefaultGroupFilter:
    """Two lists of Java regexes over whole ids: excludes win, an empty list matches nothing (KIP-382).

    Raises ConfigError for a pattern that can't be used.
    """

    def __init__(self, groups: Sequence[str], groups_exclude: Sequence[str]) -> None:
        self._included = compile_list(groups, "groups")
        self._excluded = compile_list(groups_exclude, "groups.exclude")

    def should_replicate(self, group: str) -> bool:
        return bool(self._included.fullmatch(group)) and not self._excluded.fullmatch(group)
