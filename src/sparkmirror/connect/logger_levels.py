"""Reads and sets the levels of this process's loggers while it runs (KIP-495)."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from sparkmirror.domain.log_levels import level_name, level_number

ROOT: Final = "root"


class LoggerLevel(NamedTuple):
    """`last_modified` in milliseconds since 1970; None for a level that was not set here."""

    level: str
    last_modified: int | None


class LogLevels:
    """Safe in any thread. Covers the loggers that exist; reading a level does not create a logger."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._modified: dict[str, int] = {}
        self._changing = threading.Lock()

    def level(self, name: str) -> LoggerLevel | None:
        """None for an unknown logger."""
        known = _root() if name.lower() == ROOT else _loggers().get(name)
        return None if known is None else self._of(known)

    def all(self) -> Mapping[str, LoggerLevel]:
        """By name, `root` included."""
        known = {ROOT: _root(), **_loggers()}
        return {name: self._of(known[name]) for name in sorted(known)}

    def set(self, namespace: str, level: str) -> Sequence[str]:
        """Set the level of a logger and of those below it; return the changed ones' names, sorted.

        Raises KeyError for an unknown level.
        """
        number = level_number(level)
        with self._changing:
            changed = [known for known in _below(namespace) if known.getEffectiveLevel() != number]
            for known in changed:
                known.setLevel(number)
                self._modified[known.name] = int(self._now() * 1000)
        return sorted(known.name for known in changed)

    def _of(self, known: logging.Logger) -> LoggerLevel:
        return LoggerLevel(level_name(known.getEffectiveLevel()), self._modified.get(known.name))


def _root() -> logging.Logger:
    return logging.getLogger()


def _loggers() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict.copy()
    return {name: entry for name, entry in known.items() if isinstance(entry, logging.Logger)}


def _below(namespace: str) -> list[logging.Logger]:
    if namespace.lower() == ROOT:
        return [_root(), *_loggers().values()]
    top = logging.getLogger(namespace)
    return [top, *(known for name, known in _loggers().items() if name.startswith(f"{namespace}."))]
