"""Defines what a mirror was asked for and can't do now: one word, the reason, since when, and the remedy.

The connector that finds one keeps it (`storage.troubles`), and all that shows a mirror shows it: pages,
commands, metrics, events, Connect's status. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sparkmirror.domain.errors import (
    ClusterChangedError,
    DisconnectedError,
    SparkmirrorError,
    ThrottledError,
)
from sparkmirror.domain.quantities import some_of

NEVER_RUN: Final = "no mirror of this file has run yet"
NAME: Final = "{name}"
"""Stands in reasons and remedies for the name of each thing that they are about."""


class TroubleWord(StrEnum):
    """Says what is not done. The worst one first."""

    FAILED = "failed"
    BLOCKED = "blocked"
    """A selected topic that can't be mirrored, because of its name or a plug-in."""
    NOT_CREATED = "not created"
    NOT_GROWN = "not grown"
    NOT_READ = "not readable"
    NOT_WRITTEN = "not written"
    NOT_COMMITTED = "not committed"
    NOT_SYNCED = "not synced"
    THROTTLED = "throttled"
    WAITING = "waiting"
    DIFFERS = "differs"
    """A config that the target doesn't take: everything else follows the source."""
    SHARED = "shared"
    """Other flows write the same topic of the target: nothing is left undone."""


class Subject(StrEnum):
    """The kind of thing that a trouble is about."""

    TOPIC = "topic"
    """A topic of the source, by its name there."""
    GROUP = "group"
    STATE_TOPIC = "internal topic"
    CONFIG = "config"
    """A config of topics, or all those of one topic, by its name on the target."""
    ACL = "ACL"
    ACCOUNT = "account"
    """A user, or what a quota is for."""
    TASK = "task"
    """The tasks that copy, together."""
    ACTION = "action"
    """Something that the mirror does now and then."""


REPEATED_EVERY_S: Final = 60.0
"""The interval at which the log repeats that something still goes wrong."""
_LASTS_FROM_S: Final = 60.0
"""A leader is elected, and a new topic known to every broker, in less."""
REMARKS: Final = frozenset({TroubleWord.DIFFERS, TroubleWord.SHARED})
"""The words for what operators should know, and need not change."""
_NO_ACTION: Final = frozenset({TroubleWord.THROTTLED, TroubleWord.WAITING, *REMARKS})
_SEVERITY: Final = {word: at for at, word in enumerate(TroubleWord)}


class Cause(NamedTuple):
    """A reason that several things may share. `reason` and `remedy` are texts with `NAME`."""

    word: TroubleWord
    subject: Subject
    reason: str
    remedy: str = ""

    @property
    def requires_action(self) -> bool:
        """Whether something is not done, and does not pass by itself."""
        return self.word not in _NO_ACTION

    @property
    def is_remark(self) -> bool:
        """Whether operators should know it, and nothing is ill."""
        return self.word in REMARKS

    @classmethod
    def of(cls, word: TroubleWord, subject: Subject, name: str, reason: str, remedy: str = "") -> "Cause":
        """Make the cause from texts about one thing, which is called `name` in them."""
        named = rf"(?<!\w){re.escape(name)}(?!\w)" if name else "(?!)"
        return cls(word, subject, re.sub(named, NAME, reason), re.sub(named, NAME, remedy))

    @classmethod
    def of_error(
        cls, word: TroubleWord, subject: Subject, name: str, error: SparkmirrorError, remedy: str = ""
    ) -> "Cause":
        """Make the cause from an error, whose text may end with the right that is missing and its command."""
        reason, how, right = str(error).partition("; needs ")
        remedies = [f"needs {right}"] if how else []
        return cls.of(word, subject, name, reason, "; ".join([*remedies, *([remedy] if remedy else [])]))

    def text(self, name: str) -> str:
        """Return reason and remedy for the thing of this name."""
        text = f"{self.reason}; {self.remedy}" if self.remedy else self.reason
        return text.replace(NAME, name)


class Trouble(NamedTuple):
    """`what` is a name; `name` is what reason and remedy call it, where that differs: its name on the target.

    `since` is in epoch seconds, 0.0 before it is known. `partitions` of a topic, from the first one up to the
    last one excluded, are not copied for it.
    """

    cause: Cause
    what: str
    name: str = ""
    since: float = 0.0
    partitions: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        first, stop = self.partitions
        if not first:
            return self.what
        which = f"partition {first}" if stop == first + 1 else f"partitions {first} to {stop - 1}"
        return f"{self.what} ({which})"

    @property
    def word(self) -> TroubleWord:
        return self.cause.word

    @property
    def requires_action(self) -> bool:
        return self.cause.requires_action

    @property
    def is_remark(self) -> bool:
        return self.cause.is_remark

    @property
    def reason(self) -> str:
        return self.cause.reason.replace(NAME, self.name or self.what)

    @property
    def remedy(self) -> str:
        return self.cause.remedy.replace(NAME, self.name or self.what)

    @property
    def text(self) -> str:
        """Reason and remedy."""
        return self.cause.text(self.name or self.what)


def changed_cluster(alias: str, why: str) -> Trouble:
    """Make the trouble of a connector at whose cluster's address another one answers."""
    return Trouble(Cause(TroubleWord.FAILED, Subject.ACTION, why), f"reaching {alias}")


def lasts(error: SparkmirrorError, for_s: float) -> bool:
    """Whether an error, of the last `for_s` seconds, is a trouble of its own that does not pass by itself.

    A cluster that is away, throttles, or is another one than before is told by who watches it.
    """
    if isinstance(error, DisconnectedError | ThrottledError | ClusterChangedError):
        return False
    return not error.retriable or for_s >= _LASTS_FROM_S


@dataclass(slots=True)
class Lasting:
    """Something that goes wrong since a time of any clock, in seconds; `failures` are attempts since then."""

    began_at: float
    logged_at: float
    failures: int = 0

    @classmethod
    def since(cls, now: float) -> "Lasting":
        return cls(now, now)

    def is_due(self, now: float) -> bool:
        """Whether to say that it still lasts; then that counts as said."""
        if now - self.logged_at < REPEATED_EVERY_S:
            return False
        self.logged_at = now
        return True

    def is_trouble(self, error: SparkmirrorError, now: float) -> bool:
        """Whether the error, the last one, does not pass by itself, as `lasts` says."""
        return lasts(error, now - self.began_at)


def reason_in_common(text: str, names: Iterable[str]) -> str:
    """Return an error without the names that it is about, and without numbers: equal ones have one cause."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, NAME)
    return re.sub(r"\d+", "", text)


def worst_first(troubles: Iterable[Trouble]) -> list[Trouble]:
    return sorted(troubles, key=lambda it: (_SEVERITY[it.word], it.cause, it.what))


def by_cause(troubles: Iterable[Trouble]) -> Mapping[Cause, Sequence[Trouble]]:
    """Group troubles by what they have in common, the worst first."""
    found: dict[Cause, list[Trouble]] = {}
    for trouble in worst_first(troubles):
        found.setdefault(trouble.cause, []).append(trouble)
    return found


def trouble_lines(troubles: Iterable[Trouble]) -> list[str]:
    """Return a line for each cause, however many things it concerns."""
    return [cause_line(of) for of in by_cause(troubles).values()]


def cause_line(of: Sequence[Trouble]) -> str:
    """Say what several troubles of one cause are; reason and remedy are those of the first."""
    first = of[0]
    return f"{some_of([str(it) for it in of])} {first.word}: {first.text}"


def action_required(troubles: Iterable[Trouble]) -> Trouble | None:
    """Return the worst of them that does not pass by itself."""
    return next((it for it in worst_first(troubles) if it.requires_action), None)
