"""The words for the state of a thing, and the table by which a partition gets its word.

A thing has exactly one word. Those of many things make that of the whole: the worst one. `CONDITIONS` is the
whole decision: the first row whose condition holds gives the word and the advice.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from sparkmirror.metrics.looks import PartitionLook, Standstill
from sparkmirror.storage.progress import PartitionState

CURRENT_S: Final = 5.0
"""Records that came later than that ago are on their way: whoever is so close has caught up."""
CUT_OFF_AFTER_S: Final = 10.0
"""Reports are read once a second."""


class Word(StrEnum):
    """The worst one first."""

    NEEDS_A_PERSON = "needs a person"
    STALLED = "stalled"
    UNKNOWN = "unknown"
    RETRYING = "retrying"
    FALLING_BEHIND = "falling behind"
    CATCHING_UP = "catching up"
    PAUSED = "paused"
    CAUGHT_UP = "caught up"


_SEVERITY: Final = {word: at for at, word in enumerate(Word)}


def severity(word: Word) -> int:
    """The lower, the worse."""
    return _SEVERITY[word]


def worst_of(words: Iterable[Word]) -> Word:
    """UNKNOWN without any: nothing is known of nothing."""
    return min(words, key=severity, default=Word.UNKNOWN)


class Situation(NamedTuple):
    """A partition, the state of its connector if that does not run, and the age of the last reports."""

    partition: PartitionLook
    standstill: Standstill | None = None
    report_age_s: float | None = 0.0

    @property
    def is_cut_off(self) -> bool:
        return self.report_age_s is None or self.report_age_s > CUT_OFF_AFTER_S

    @property
    def lag(self) -> int | None:
        """Who reports an error may not know of newer records: then none is known instead of 0."""
        report = self.partition.report
        if report is None or self.is_cut_off or (report.error is not None and not report.lag):
            return None
        return report.lag

    def reports(self, state: PartitionState) -> bool:
        report = self.partition.report
        return report is not None and report.state is state

    @property
    def is_current(self) -> bool:
        lag_s = self.partition.lag_s
        return self.lag == 0 or (lag_s is not None and lag_s <= CURRENT_S + self.partition.slack_s)

    @property
    def closes(self) -> bool:
        """Whether the lag shrinks, or it is too early to tell."""
        motion = self.partition.motion
        return motion is None or motion.seconds < CURRENT_S or motion.closed > 0


class Condition(NamedTuple):
    """`advice` is what to do, or what is done, for people; `name` is for documents and tests."""

    name: str
    holds: Callable[[Situation], bool]
    word: Word
    advice: str = ""


CONDITIONS: Final = (
    Condition(
        "its connector failed",
        lambda it: it.standstill == "failed",
        Word.NEEDS_A_PERSON,
        "correct what the error names, then restart the connector",
    ),
    Condition(
        "its connector is paused or stopped",
        lambda it: it.standstill in ("paused", "stopped"),
        Word.PAUSED,
        "resume the connector to continue",
    ),
    Condition(
        "no report has been read for 10 s",
        lambda it: it.is_cut_off,
        Word.UNKNOWN,
        "reports are read from the target: does it answer?",
    ),
    Condition(
        "the task reports a failure",
        lambda it: it.reports(PartitionState.FAILED),
        Word.NEEDS_A_PERSON,
        "do what the error says; it is tried again now and then",
    ),
    Condition(
        "the task has not reported it",
        lambda it: it.partition.is_silent,
        Word.UNKNOWN,
        "its task has not reported yet: Spark's log has the errors of tasks that can't start",
    ),
    Condition(
        "the task retries",
        lambda it: it.reports(PartitionState.RETRYING),
        Word.RETRYING,
        "nothing to do: it continues when the error has passed",
    ),
    Condition(
        "it has lag, no progress for a minute, and no error",
        lambda it: it.partition.is_stalled,
        Word.STALLED,
        "restart the connector, and report it with Spark's log",
    ),
    Condition(
        "the source's end is not known",
        lambda it: it.lag is None,
        Word.UNKNOWN,
        "the source's end has not been read yet",
    ),
    Condition("the lag is 0, or 5 s at most", lambda it: it.is_current, Word.CAUGHT_UP),
    Condition("the lag shrinks", lambda it: it.closes, Word.CATCHING_UP),
    Condition(
        "the lag grows",
        lambda _: True,
        Word.FALLING_BEHIND,
        "more is written than copied: raise tasks.max, or look for a limit",
    ),
)


_OF_RUNNING: Final = CONDITIONS[7:]
"""What is left for a partition that copies, as nearly all do nearly always."""


def condition_of(situation: Situation) -> Condition:
    look = situation.partition
    copies = (
        situation.standstill is None
        and not look.is_silent
        and not look.is_stalled
        and not situation.is_cut_off
        and situation.reports(PartitionState.RUNNING)
    )
    return next(it for it in (_OF_RUNNING if copies else CONDITIONS) if it.holds(situation))
