"""The table by which a partition gets its word. The first row whose condition holds gives word and advice."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import THROTTLED_FROM, PartitionLook, Standstill
from sparkmirror.metrics.partition_table import (
    CODES,
    PROMOTED,
    Columns,
    Flags,
    Indices,
    Lags,
    Numbers,
    is_cut_off,
    lags_of,
    table_of,
)
from sparkmirror.storage.progress import PartitionState
from sparkmirror.view.words import Word

CURRENT_S: Final = 5.0
"""Records younger than this are on their way: a partition that lacks no others has caught up."""


class Situation(NamedTuple):
    """Partitions, the state of their connector if that does not run, and the ages of the last reports.

    The fields are arrays: one value for each partition, NaN where it is unknown.
    """

    partitions: Columns
    standstill: Standstill | None = None
    report_age_s: Numbers | float = 0.0
    """NaN before any report was read."""
    begins: Flags | bool = False
    """Whether its copy job is so young that its task may not have reported it yet."""
    is_stopped: Flags | bool = False
    """Whether the mirror was stopped in order."""
    is_away: Flags | bool = False
    """Whether the source does not answer: what it has by now is not known."""
    is_dead: Flags | bool = False
    """Whether the mirror does not run, and was not stopped in order: nothing is on its way."""

    @property
    def is_cut_off(self) -> Flags:
        return is_cut_off(self.report_age_s)

    @property
    def lags(self) -> Lags:
        return lags_of(self.partitions, self.report_age_s, self.is_away)

    @property
    def lag(self) -> Numbers:
        return self.lags.records

    def reports(self, state: PartitionState) -> Flags:
        return np.equal(self.partitions.state, CODES[state])

    @property
    def is_current(self) -> Flags:
        return np.equal(self.lag, 0) | (self.partitions.lag_s <= CURRENT_S + self.partitions.slack_s)

    @property
    def is_throttled(self) -> Flags:
        it = self.partitions
        return np.maximum(it.source_throttled, it.target_throttled) >= THROTTLED_FROM

    @property
    def closes(self) -> Flags:
        """Tells whether the lag shrinks, or it is too early to tell."""
        moved_s = self.partitions.moved_s
        return np.isnan(moved_s) | (moved_s < CURRENT_S) | (self.partitions.closed > 0)


class Condition(NamedTuple):
    """`advice` is what to do, or what is done, for people; `name` is for documents and tests."""

    name: str
    holds: Callable[[Situation], Flags | bool]
    word: Word
    advice: str = ""


CONDITIONS: Final = (
    Condition(
        "its topic is promoted",
        lambda it: np.equal(it.partitions.state, PROMOTED),
        Word.PROMOTED,
        "applications write it on the target: nothing is copied",
    ),
    Condition(
        "its connector failed",
        lambda it: it.standstill == "failed",
        Word.ACTION_REQUIRED,
        "correct what the error names, then restart the connector",
    ),
    Condition(
        "its connector is paused",
        lambda it: it.standstill == "paused",
        Word.PAUSED,
        "resume the connector to continue",
    ),
    Condition(
        "its connector, or the mirror, was stopped in order",
        lambda it: (it.standstill == "stopped") | it.is_stopped,
        Word.STOPPED,
        "start it again to continue",
    ),
    Condition(
        "it has lag, and the mirror does not run",
        lambda it: it.is_dead & (it.lag > 0),
        Word.ACTION_REQUIRED,
        "start the mirror",
    ),
    Condition(
        "its copy job has just begun, and its task has not reported it",
        lambda it: (it.partitions.is_silent > 0) & ~it.is_cut_off & it.begins,
        Word.STARTING,
        "nothing to do: its task starts",
    ),
    Condition(
        "no report has been read for 10 s",
        lambda it: it.is_cut_off,
        Word.UNKNOWN,
        "reports are read from the target, and by watch from both clusters: do they answer?",
    ),
    Condition(
        "the opposite flow has copied its source from its target",
        lambda it: it.reports(PartitionState.STANDBY),
        Word.STANDBY,
        "nothing to do: sparkmirror promote and failback turn the direction round",
    ),
    Condition(
        "the task reports a failure",
        lambda it: it.reports(PartitionState.FAILED),
        Word.ACTION_REQUIRED,
        "do what the error says; it is retried periodically",
    ),
    Condition(
        "the task has not reported it, or reports nothing for 25 s",
        lambda it: it.partitions.is_silent > 0,
        Word.UNKNOWN,
        "its task does not report: Spark's log has the errors of tasks that can't start",
    ),
    Condition(
        "the task retries",
        lambda it: it.reports(PartitionState.RETRYING),
        Word.RETRYING,
        "nothing to do: it continues when the error has passed",
    ),
    Condition(
        "it has lag, or its end is not known, and a quota throttles its task",
        lambda it: it.is_throttled & (np.isnan(it.lag) | ~it.is_current),
        Word.THROTTLED,
        "a client quota lets no more through: raise it for the mirror's user or client id, or wait",
    ),
    Condition(
        "it has lag, no progress for a minute, and no error",
        lambda it: it.partitions.is_stalled > 0,
        Word.STALLED,
        "restart the connector; Spark's log, or that of Java's worker, has the reason",
    ),
    Condition(
        "the source's end is not known",
        lambda it: np.isnan(it.lag),
        Word.UNKNOWN,
        "its error says why; without one, the source's end has not been read yet",
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


def conditions_of(situation: Situation) -> Indices:
    """Find for each partition the first row of `CONDITIONS` that holds."""
    found = np.full(len(situation.partitions.lag), len(CONDITIONS) - 1, np.intp)
    for at in reversed(range(len(CONDITIONS))):
        found = np.where(CONDITIONS[at].holds(situation), at, found)
    return found


def condition_of_standstill(standstill: Standstill) -> Condition:
    """Find the row for a connector that does not run."""
    nothing = table_of([PartitionLook(TopicPartition("", 0), None)]).columns
    return CONDITIONS[conditions_of(Situation(nothing, standstill))[0]]
