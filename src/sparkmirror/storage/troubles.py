"""Keeps what a connector can't do now: logged and noted when it begins and when it is over."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sparkmirror.domain.quantities import as_time, some_of
from sparkmirror.domain.troubles import (
    Cause,
    Trouble,
    TroubleWord,
    action_required,
    by_cause,
    cause_line,
    worst_first,
)
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.storage.events import EventKind, Note, no_note

_LINES_MAX: Final = 5
"""The most causes that are logged at once."""

_Key = tuple[TroubleWord, str]


class Troubles:
    """Each finder replaces what it has found before. Thread-safe."""

    def __init__(
        self, log: "FlowLog | logging.Logger", note: Note = no_note, clock: Callable[[], float] = time.time
    ) -> None:
        """`note` gets an event for each cause that begins, and for each that is over."""
        self._log = log
        self._note = note
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[str, dict[_Key, Trouble]] = {}
        self._now: Sequence[Trouble] = ()

    @property
    def now(self) -> Sequence[Trouble]:
        """All of them, the worst first; the same list while nothing changes."""
        return self._now

    @property
    def text(self) -> str | None:
        """The worst one that requires action, None without one."""
        worst = action_required(self._now)
        if worst is None:
            return None
        return cause_line([it for it in self._now if it.cause == worst.cause])

    def tell(self, finder: str, found: Iterable[Trouble]) -> None:
        """Take all that `finder` finds now: what it does not name any more is over."""
        now = self._clock()
        with self._lock:
            before = self._found.get(finder, {})
            after: dict[_Key, Trouble] = {}
            for it in found:
                known = before.get((it.word, it.what))
                since = it.since or (now if known is None else known.since)
                after[it.word, it.what] = it._replace(since=since)
            if after == before:
                return
            self._found[finder] = after
            self._now = worst_first(it for of in self._found.values() for it in of.values())
        self._say_new([it for key, it in after.items() if not _is_same(it, before.get(key))])
        self._say_over([it for key, it in before.items() if key not in after], now)

    def _say_new(self, new: Sequence[Trouble]) -> None:
        causes = by_cause(new)
        for at, (cause, of) in enumerate(causes.items()):
            line = cause_line(of)
            if at < _LINES_MAX:
                self._log.log(_level(cause), "%s", line)
            self._note(EventKind.FAILED if cause.requires_action else EventKind.RETRYING, line, _about(of))
        if len(causes) > _LINES_MAX:
            self._log.warning("and %d more reasons, see sparkmirror status", len(causes) - _LINES_MAX)

    def _say_over(self, over: Sequence[Trouble], now: float) -> None:
        for at, of in enumerate(by_cause(over).values()):
            line = (
                f"{some_of([it.what for it in of])} no longer {of[0].word} "
                f"after {as_time(now - min(it.since for it in of))}"
            )
            if at < _LINES_MAX:
                self._log.info("%s", line)
            self._note(EventKind.RECOVERED, line, _about(of))


def _is_same(it: Trouble, before: Trouble | None) -> bool:
    return before is not None and before.cause == it.cause


def _level(cause: Cause) -> int:
    return logging.WARNING if cause.requires_action else logging.INFO


def _about(of: Sequence[Trouble]) -> str:
    return of[0].what if len(of) == 1 else ""
