"""Loggers that add the flow and the connector to each record, and that log a repeated finding once."""

import logging
from collections.abc import Iterable
from typing import Final, TypeAlias

from sparkmirror.domain.ids import ConnectorName, Flow

FlowLog: TypeAlias = "logging.LoggerAdapter[logging.Logger]"


def flow_log(module: str, flow: Flow, connector: ConnectorName | None = None) -> FlowLog:
    about = {"flow": str(flow)} if connector is None else {"flow": str(flow), "connector": connector}
    return logging.LoggerAdapter(logging.getLogger(module), about)


_NO_LIMIT: Final = 1_000_000


class LogOnce:
    """Logs each finding of a periodic job when it appears, and not again while it lasts. Has one owner."""

    def __init__(
        self,
        log: "FlowLog | logging.Logger",
        level: int = logging.WARNING,
        lines_max: int = _NO_LIMIT,
        overflow: str = "and %d more",
    ) -> None:
        """`overflow` is logged with the number of lines beyond `lines_max` that come at once."""
        self._log = log
        self._level = level
        self._lines_max = lines_max
        self._overflow = overflow
        self._current: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether the last call had findings."""
        return bool(self._current)

    def log(self, lines: Iterable[str]) -> None:
        """Log the findings of now that were not among those of the last call."""
        current = dict.fromkeys(lines)
        news = [line for line in current if line not in self._current]
        self._current = frozenset(current)
        for line in news[: self._lines_max]:
            self._log.log(self._level, "%s", line)
        if len(news) > self._lines_max:
            self._log.log(self._level, self._overflow, len(news) - self._lines_max)
