"""Two lists of Java regexes over whole names, of those wanted and of those not: excludes win (KIP-382)."""

import re
from collections.abc import Sequence
from typing import Final

from sparkmirror.policies.java_regex import compile_list

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]*[a-zA-Z0-9][a-zA-Z0-9._-]*")


class NameLists:
    """What `topics` and `topics.exclude`, or `groups` and `groups.exclude`, select. An empty list is no name.

    Raises ConfigError for a pattern that can't be used.
    """

    def __init__(self, key: str, included: Sequence[str], excluded: Sequence[str]) -> None:
        """`key` is the first list's; the second's has `.exclude` behind it."""
        self._key = key
        self._exclude_key = f"{key}.exclude"
        self._includes = included
        self._excludes = excluded
        self._included = compile_list(included, self._key)
        self._excluded = compile_list(excluded, self._exclude_key)

    @property
    def named(self) -> frozenset[str]:
        """The names that stand in the first list themselves: such a pattern matches itself, at least."""
        return frozenset(name for name in self._includes if _NAME.fullmatch(name) and self.selects(name))

    def selects(self, name: str) -> bool:
        return bool(self._included.fullmatch(name)) and not self._excluded.fullmatch(name)

    def refused_by(self, name: str) -> str | None:
        """Which setting keeps the name away, with its pattern if there is one; None if it's wanted."""
        if self._excluded.fullmatch(name):
            pattern = next(
                (one for one in self._excludes if compile_list([one], self._exclude_key).fullmatch(name)), ""
            )
            return f"{self._exclude_key} ({pattern})"
        return None if self._included.fullmatch(name) else self._key
