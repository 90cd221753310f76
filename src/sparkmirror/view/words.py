"""The words for the state of a thing. It has exactly one; those of many things make that of the whole."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Word(StrEnum):
    """The worst one first."""

    ACTION_REQUIRED = "action required"
    STALLED = "stalled"
    UNKNOWN = "unknown"
    STARTING = "starting"
    RETRYING = "retrying"
    THROTTLED = "throttled"
    """A quota of a cluster lets no more through."""
    FALLING_BEHIND = "falling behind"
    CATCHING_UP = "catching up"
    STOPPED = "stopped"
    """The flow was stopped in order: it copies nothing until it is started again."""
    PAUSED = "paused"
    STANDBY = "standby"
    """Another process copies, and this one takes over; or the opposite flow does, until a failback."""
    CAUGHT_UP = "caught up"
    PROMOTED = "promoted"
    """Copied no more: applications write it on the target."""


WORDS: Final = tuple(Word)
"""All words by their severity."""
CALM: Final = (Word.CATCHING_UP, Word.CAUGHT_UP, Word.STANDBY, Word.PROMOTED)
"""The words that need no reason."""
_FINE: Final = (*CALM, Word.THROTTLED, Word.FALLING_BEHIND)
_SEVERITY: Final = {word: at for at, word in enumerate(Word)}


def severity(word: Word) -> int:
    """The lower, the worse."""
    return _SEVERITY[word]


def worst_of(words: Iterable[Word]) -> Word:
    """Return the worst of the words, UNKNOWN without any."""
    return min(words, key=severity, default=Word.UNKNOWN)


def is_fine(word: Word) -> bool | None:
    """Tell whether no operator has to act; None where that can't be told."""
    return None if word in (Word.UNKNOWN, Word.STARTING) else word in _FINE
