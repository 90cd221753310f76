"""Periodic jobs find the same again and again: each finding is said when it comes, not while it stays."""

import logging
from collections.abc import Iterable
from typing import Final

from sparkmirror.connectors.flow_log import FlowLog

_NO_LIMIT: Final = 1_000_000


class LogOnce:
    """One owner."""

    def __init__(
        self,
        log: FlowLog,
        level: int = logging.WARNING,
        lines_max: int = _NO_LIMIT,
        rest: str = "and %d more",
    ) -> None:
        """Of more lines than `lines_max` that come at once, `rest` tells the number."""
        self._log = log
        self._level = level
        self._lines_max = lines_max
        self._rest = rest
        self._current: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether there was something the last time."""
        return bool(self._current)

    def say(self, lines: Iterable[str]) -> None:
        """All that is found now; what was not among it the last time is said."""
        current = dict.fromkeys(lines)
        news = [line for line in current if line not in self._current]
        self._current = frozenset(current)
        for line in news[: self._lines_max]:
            self._log.log(self._level, "%s", line)
        if len(news) > self._lines_max:
            self._log.log(self._level, self._rest, len(news) - self._lines_max)
