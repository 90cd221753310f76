"""The words for the state of a thing, and what follows from each of them: exit codes, health, problems.

A thing has exactly one word; those of many things make that of the whole. Pure.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class Word(StrEnum):
    """The worst one first."""

    ACTION_REQUIRED = "action required"
    STALLED = "stalled"
    UNKNOWN = "unknown"
    STARTING = "starting"
    RETRYING = "retrying"
    STOPPED = "stopped"
    """The flow was stopped in order: it copies nothing until it is started again."""
    PAUSED = "paused"
    THROTTLED = "throttled"
    """A quota of a cluster lets no more through."""
    FALLING_BEHIND = "falling behind"
    CATCHING_UP = "catching up"
    STANDBY = "standby"
    """Another process copies, and this one takes over; or the opposite flow does, until a failback."""
    CAUGHT_UP = "caught up"
    PROMOTED = "promoted"
    """Copied no more: applications write it on the target."""


class Verdict(NamedTuple):
    """The consequences of a word.

    `is_fine`: no operator has to act, None where that can't be told (exit codes 0, 1, 2). `is_healthy`: the
    mirror does what it was told to, None while it starts (`/health` answers 200, 500, 503). `is_calm`: it is
    no problem, and needs no reason.
    """

    is_fine: bool | None
    is_healthy: bool | None
    is_calm: bool = False


VERDICTS: Final[Mapping[Word, Verdict]] = {
    Word.ACTION_REQUIRED: Verdict(is_fine=False, is_healthy=False),
    Word.STALLED: Verdict(is_fine=False, is_healthy=False),
    # No probe can rely on a mirror of which nothing is known.
    Word.UNKNOWN: Verdict(is_fine=None, is_healthy=False),
    Word.STARTING: Verdict(is_fine=None, is_healthy=None),
    Word.RETRYING: Verdict(is_fine=False, is_healthy=False),
    # An operator asked for it, so the process is healthy; but nothing is copied until an operator acts.
    Word.STOPPED: Verdict(is_fine=False, is_healthy=True),
    Word.PAUSED: Verdict(is_fine=False, is_healthy=True),
    # These pass by themselves, or by a setting: shown, and no failure.
    Word.THROTTLED: Verdict(is_fine=True, is_healthy=True),
    Word.FALLING_BEHIND: Verdict(is_fine=True, is_healthy=True),
    Word.CATCHING_UP: Verdict(is_fine=True, is_healthy=True, is_calm=True),
    Word.STANDBY: Verdict(is_fine=True, is_healthy=True, is_calm=True),
    Word.CAUGHT_UP: Verdict(is_fine=True, is_healthy=True, is_calm=True),
    Word.PROMOTED: Verdict(is_fine=True, is_healthy=True, is_calm=True),
}
WORDS: Final = tuple(Word)
"""All words by their severity."""
CALM: Final = tuple(word for word in Word if VERDICTS[word].is_calm)
_SEVERITY: Final = {word: at for at, word in enumerate(Word)}


def severity(word: Word) -> int:
    """The lower, the worse."""
    return _SEVERITY[word]


def worst_of(words: Iterable[Word]) -> Word:
    """Return the worst of the words, UNKNOWN without any."""
    return min(words, key=severity, default=Word.UNKNOWN)


def is_fine(word: Word) -> bool | None:
    """Tell whether no operator has to act; None where that can't be told."""
    return VERDICTS[word].is_fine


def are_healthy(words: Iterable[Word]) -> bool | None:
    """Tell whether all do what they were told to; None where the others still start."""
    verdicts = {VERDICTS[word].is_healthy for word in words}
    return False if False in verdicts else None if None in verdicts else True
