"""Keeps what a connector can't do now: logged and noted when it begins and when it is over."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.quantities import as_time, some_of
from sparkmirror.domain.troubles import (
    Cause,
    Subject,
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

_Found = Mapping[tuple[TroubleWord, str], Trouble]


class Troubles:
    """Holds the troubles of all finders; each replaces what it has found before. Thread-safe."""

    def __init__(
        self, log: "FlowLog | logging.Logger", note: Note = no_note, clock: Callable[[], float] = time.time
    ) -> None:
        """`note` gets an event for each cause that begins, and for each that is over."""
        self._log = log
        self.note = note
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[str, _Found] = {}
        self._now: Sequence[Trouble] = ()

    @property
    def now(self) -> Sequence[Trouble]:
        """List all of them, the worst first; the same list while nothing changes."""
        return self._now

    @property
    def text(self) -> str | None:
        """The worst one that requires action, None without one."""
        worst = action_required(self._now)
        if worst is None:
            return None
        return cause_line([it for it in self._now if it.cause == worst.cause])

    def tell(self, finder: str, found: Iterable[Trouble], *, is_logged: bool = False) -> None:
        """Take all that `finder` finds now: what it does not name any more is over.

        `is_logged`: the caller logs it.
        """
        now = self._clock()
        with self._lock:
            before = self._found.get(finder, {})
            after: dict[tuple[TroubleWord, str], Trouble] = {}
            for it in found:
                known = before.get((it.word, it.what))
                since = it.since or (now if known is None else known.since)
                after[it.word, it.what] = it._replace(since=since)
            if after == before:
                return
            self._found[finder] = after
            self._now = worst_first(it for of in self._found.values() for it in of.values())
        lines_max = 0 if is_logged else _LINES_MAX
        self._say_new(_news(after, before), lines_max)
        self._say_over(_over(after, before), now, lines_max)

    def of_denials(
        self, finder: str, trouble_of: Callable[[AuthorizationError], Trouble]
    ) -> Callable[[AuthorizationError | None], None]:
        """Return what takes the errors of `Denials`, which logs them: that of a missing right, or None."""

        def tell(error: AuthorizationError | None) -> None:
            self.tell(finder, [] if error is None else [trouble_of(error)], is_logged=True)

        return tell

    def tell_failures(self, of: str, failures: Mapping[str, str]) -> None:
        """Take the errors of the jobs that fail on the thread `of`, which logs them itself."""
        known = {cause_line([it]) for it in self._now if it.cause.subject is not Subject.ACTION}
        self.tell(
            of,
            [
                Trouble(Cause.of(TroubleWord.FAILED, Subject.ACTION, job, error), job)
                for job, error in failures.items()
                if error not in known
            ],
            is_logged=True,
        )

    def _say_new(self, new: Sequence[Trouble], lines_max: int) -> None:
        causes = by_cause(new)
        for at, (cause, of) in enumerate(causes.items()):
            line = cause_line(of)
            if at < lines_max:
                self._log.log(_level(cause), "%s", line)
            self.note(_kind(cause), line, _about(of))
        if len(causes) > lines_max > 0:
            self._log.warning("and %d more reasons, see sparkmirror status", len(causes) - lines_max)

    def _say_over(self, over: Sequence[Trouble], now: float, lines_max: int) -> None:
        for at, of in enumerate(by_cause(over).values()):
            names = some_of([it.what for it in of])
            line = f"{names} {of[0].word}: over after {as_time(now - min(it.since for it in of))}"
            if at < lines_max:
                self._log.info("%s", line)
            self.note(EventKind.RECOVERED, line, _about(of))


def _news(after: _Found, before: _Found) -> list[Trouble]:
    """Return troubles that are new; of a cause that may pass by itself only the first ones."""
    causes = {it.cause for it in before.values() if not it.requires_action}
    return [
        it
        for key, it in after.items()
        if it.cause not in causes and ((known := before.get(key)) is None or known.cause != it.cause)
    ]


def _over(after: _Found, before: _Found) -> list[Trouble]:
    causes = {it.cause for it in after.values() if not it.requires_action}
    return [it for key, it in before.items() if key not in after and it.cause not in causes]


def _level(cause: Cause) -> int:
    return logging.WARNING if cause.requires_action or cause.is_remark else logging.INFO


def _kind(cause: Cause) -> EventKind:
    if cause.is_remark:
        return EventKind.CONFIGURED
    return EventKind.FAILED if cause.requires_action else EventKind.RETRYING


def _about(of: Sequence[Trouble]) -> str:
    return of[0].what if len(of) == 1 else ""
