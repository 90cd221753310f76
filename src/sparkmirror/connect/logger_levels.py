"""Reads and sets the levels of this process's loggers while it runs (KIP-495)."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from sparkmirror.domain.connect import ConnectError

ROOT: Final = "root"
_NUMBERS: Final[Mapping[str, int]] = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": 10,
    "INFO": 20,
    "WARN": 30,
    "ERROR": 40,
    "FATAL": 50,
    "OFF": 100,
}
"""Sorted from the most verbose; 0 would mean the level of a logger's parent."""
_NAME_MAX: Final = 255
"""Characters; Python keeps an entry for each dot of a name."""
MADE_MAX: Final = 500
"""Loggers that exist only because their level was set: nothing ever removes one."""


class LoggerLevel(NamedTuple):
    """`last_modified` in milliseconds since 1970; None for a level that was not set here."""

    level: str
    last_modified: int | None


class LogLevels:
    """Safe in any thread. Covers the loggers that exist; reading a level does not create a logger."""

    def __init__(self, now: Callable[[], float] = time.time, made_max: int = MADE_MAX) -> None:
        self._now = now
        self._made_max = made_max
        self._modified: dict[str, int] = {}
        self._made: set[str] = set()
        self._changing = threading.Lock()

    def level(self, name: str) -> LoggerLevel | None:
        """Return the level of a logger; None for an unknown one."""
        known = _root() if name.lower() == ROOT else _loggers().get(name)
        return None if known is None else self._of(known)

    def all(self) -> Mapping[str, LoggerLevel]:
        """Return the levels of all loggers by name, `root` included."""
        known = {ROOT: _root(), **_loggers()}
        return {name: self._of(known[name]) for name in sorted(known)}

    def set(self, namespace: str, level: str) -> Sequence[str]:
        """Set the level of a logger and of those below it; return the changed ones' names, sorted.

        A logger that does not exist is made, as in Java. Raises KeyError for an unknown level, and what
        `require_place` raises.
        """
        number = level_number(level)
        with self._changing:
            if self.require_place(namespace):
                self._made.add(namespace)
            changed = [known for known in _below(namespace) if known.getEffectiveLevel() != number]
            for known in changed:
                known.setLevel(number)
                self._modified[known.name] = int(self._now() * 1000)
        return sorted(known.name for known in changed)

    def require_place(self, name: str) -> bool:
        """Whether setting its level would make this logger. Raises ConnectError where that is refused."""
        if name.lower() == ROOT or name in _loggers():
            return False
        if len(name) > _NAME_MAX:
            text = f"The name of a logger has at most {_NAME_MAX} characters."
            raise ConnectError(HTTPStatus.BAD_REQUEST, text)
        if len(self._made) >= self._made_max:
            text = f"Logger {name} does not exist, and {self._made_max} others were made for their levels."
            raise ConnectError(HTTPStatus.BAD_REQUEST, text)
        return True

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


def is_level(text: str) -> bool:
    return text.upper() in _NUMBERS


def level_number(text: str) -> int:
    """A level's number, by its name in any case. Raises KeyError for what is none."""
    return _NUMBERS[text.upper()]


def level_name(number: int) -> str:
    """The level with the same threshold as this number."""
    return next((name for name, of_level in _NUMBERS.items() if number <= of_level), "OFF")
