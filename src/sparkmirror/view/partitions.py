"""Tells of all partitions of a flow, as columns, and makes the view of one when it is asked for."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import isfinite, isnan
from typing import Final, NamedTuple

import numpy as np

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.latency import EMPTY
from sparkmirror.domain.troubles import Subject, Trouble
from sparkmirror.metrics.looks import STARTING_S, PartitionLook, SourceLook, throttled_by
from sparkmirror.metrics.partition_table import Columns, Flags, Indices, Numbers, PartitionTable, table_of
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.promotions import Promotion, Promotions
from sparkmirror.view.conditions import CONDITIONS, Situation, conditions_of
from sparkmirror.view.values import Lag, PartitionView, Speed, State
from sparkmirror.view.words import Word, severity

_SEVERITY: Final = np.array([severity(it.word) for it in CONDITIONS], np.intp)
_UNKNOWN, _CATCHING_UP = severity(Word.UNKNOWN), severity(Word.CATCHING_UP)


def number(value: float) -> float | None:
    """Return None for NaN."""
    return None if isnan(value) else float(value)


def whole(value: float) -> int | None:
    return None if isnan(value) else int(value)


class ShownColumns(NamedTuple):
    """Has columns of what is shown of partitions; NaN where it is unknown. `severity` is that of the word.

    `left_s` is infinity where the time can't be told, and minus infinity where nothing is to be caught up.
    """

    severity: Indices
    lag: Numbers
    lag_s: Numbers
    left_s: Numbers
    record_rate: Numbers
    byte_rate: Numbers
    quiet_since: Numbers

    def of(self, rows: Indices) -> "ShownColumns":
        return ShownColumns(self.severity[rows], *(column[rows] for column in self[1:]))


class Partitions:
    """Has a row for each partition of a flow's source connectors, in their order, promoted topics last."""

    def __init__(self, looks: Sequence[SourceLook], at: float = 0.0) -> None:
        """`at` is in epoch seconds."""
        without_reports = [_promoted(look) for look in looks if look.promoted]
        without_reports += [_held_back(look, at) for look in looks if look.troubles]
        self._flow = looks[0].flow if looks else None
        self.tables = [*map(_copied, looks), *without_reports]
        ages = [np.nan if look.report_age_s is None else look.report_age_s for look in looks]
        ages += [0.0] * len(without_reports)
        self._ages = np.repeat(np.array(ages, np.float64), [len(table) for table in self.tables])
        self._columns = columns = _joined(self.tables)
        situation = Situation(
            columns,
            None,
            self._ages,
            self._of_looks(_begins, looks, without_reports),
            self._of_looks(lambda look: look.is_stopped, looks, without_reports),
            self._of_looks(lambda look: look.is_source_away, looks, without_reports),
            self._of_looks(_is_dead, looks, without_reports),
        )
        self._cut_off = situation.is_cut_off
        self.conditions = conditions_of(situation)
        self.tasks = columns.task
        self.shown = _shown(situation, _SEVERITY[self.conditions])
        self._views: dict[int, PartitionView] = {}

    def __len__(self) -> int:
        return len(self.conditions)

    def _of_looks(
        self, holds: Callable[[SourceLook], bool], looks: Sequence[SourceLook], others: Sequence[object]
    ) -> Flags:
        """Repeat what holds of a connector for each of its partitions."""
        flags = [*map(holds, looks), *[False] * len(others)]
        return np.repeat(np.array(flags, np.bool_), [len(table) for table in self.tables])

    @cached_property
    def largest_lag_first(self) -> Numbers:
        """Return a key to sort by."""
        return -np.nan_to_num(self.shown.lag)

    def view(self, row: int) -> PartitionView:
        """Made once: a page asks for it several times."""
        known = self._views.get(row)
        if known is None:
            known = self._views[row] = self._view(row)
        return known

    def _view(self, row: int) -> PartitionView:
        table, at = self._place(row)
        look, shown = table[at], self.shown
        report = look.report
        left_s = shown.left_s.item(row)
        return PartitionView(
            look.source,
            TopicPartition(report.target_topic, look.source.partition)
            if report is not None and report.target_topic
            else None,
            look.task,
            self.state(row),
            _position(look),
            self.source_end(row),
            Lag(whole(shown.lag.item(row)), number(shown.lag_s.item(row))),
            left_s if isfinite(left_s) else None,
            look.quiet_since,
            Speed(number(shown.record_rate.item(row)), number(shown.byte_rate.item(row))),
            look.latencies,
            look.incidents,
            look.lost,
            look.filtered,
            report.notice if report is not None else None,
        )

    def promotion(self, row: int) -> Promotion | None:
        """Return the promotion of its topic."""
        if CONDITIONS[self.conditions[row]].word is not Word.PROMOTED:
            return None
        return self._look(row).promotion

    def state(self, row: int) -> State:
        report, condition, promotion = self.report(row), CONDITIONS[self.conditions[row]], self.promotion(row)
        is_cut_off = condition.word is Word.UNKNOWN and bool(self._cut_off[row])
        advice = condition.advice
        if promotion is not None:
            advice = promotion.of(self._look(row).source.partition)
        elif condition.word is Word.THROTTLED:
            advice = f"by {self._throttled_by(row)}: {advice}"
        return State(
            condition.word,
            number(self._ages[row] if is_cut_off else self._columns.error_for_s[row]),
            None if report is None else report.error,
            advice,
        )

    def _throttled_by(self, row: int) -> str:
        assert self._flow is not None
        columns = self._columns
        shares = columns.source_throttled.item(row), columns.target_throttled.item(row)
        return throttled_by(self._flow, *shares)

    def report(self, row: int) -> PartitionProgress | None:
        table, at = self._place(row)
        return table.report(at)

    def source(self, row: int) -> TopicPartition:
        table, at = self._place(row)
        return table.sources[at]

    def source_end(self, row: int) -> int | None:
        report = self.report(row)
        return None if report is None or report.lag is None else _next_offset(report) + report.lag

    def _look(self, row: int) -> PartitionLook:
        table, at = self._place(row)
        return table[at]

    def _place(self, row: int) -> tuple[PartitionTable, int]:
        if len(self.tables) == 1:
            return self.tables[0], row
        for table in self.tables:
            if row < len(table):
                return table, row
            row -= len(table)
        raise IndexError(row)


def _position(look: PartitionLook) -> int | None:
    if look.promotion is not None:
        parting = look.promotion.partings.get(look.source.partition)
        return None if parting is None else parting.offset
    report = look.report
    return None if report is None or report.position is None else _next_offset(report)


def _next_offset(report: PartitionProgress) -> int:
    """The first that is not copied."""
    return 0 if report.position is None else report.position + 1


def _joined(tables: Sequence[PartitionTable]) -> Columns:
    if len(tables) == 1:
        return tables[0].columns
    columns = [table.columns for table in tables] or [table_of(()).columns]
    return Columns(*(np.concatenate(each) for each in zip(*columns, strict=True)))


def _shown(situation: Situation, severity: Indices) -> ShownColumns:
    of, (lag, lag_s) = situation.partitions, situation.lags
    is_known = (of.moved_s > 0) & (of.closed > 0) & ~np.isnan(lag)
    left_s = np.divide(lag * of.moved_s, of.closed, out=np.full_like(lag, np.inf), where=is_known)
    is_unknown = severity == _UNKNOWN
    return ShownColumns(
        severity,
        lag,
        lag_s,
        np.where(severity == _CATCHING_UP, left_s, -np.inf),
        np.where(is_unknown, np.nan, of.record_rate),
        np.where(is_unknown, np.nan, of.byte_rate),
        of.quiet_since,
    )


def _begins(look: SourceLook) -> bool:
    return look.begun_s is not None and look.begun_s < STARTING_S


def _is_dead(look: SourceLook) -> bool:
    return look.is_observed and look.is_running is False and not look.is_stopped


def _copied(look: SourceLook) -> PartitionTable:
    """The partitions of topics that are not promoted."""
    table = table_of(look.partitions or ())
    if not look.promoted:
        return table
    rows = [row for row, source in enumerate(table.sources) if source.topic not in look.promoted]
    return table if len(rows) == len(table) else table.of(rows)


def _promoted(look: SourceLook) -> PartitionTable:
    return table_of(list(_promoted_looks(look.promoted)))


def _held_back(look: SourceLook, at: float) -> PartitionTable:
    """The partitions that no task copies, since something that they need can't be done."""
    copied = set(table_of(look.partitions or ()).sources)
    return table_of(
        [
            PartitionLook(
                source,
                None,
                report=_not_copied(look, trouble, source),
                is_silent=False,
                error_for_s=max(0.0, at - trouble.since),
            )
            for trouble in look.troubles
            if trouble.cause.subject is Subject.TOPIC and trouble.what not in look.promoted
            for number in range(*trouble.partitions)
            if (source := TopicPartition(trouble.what, number)) not in copied
        ]
    )


def _not_copied(look: SourceLook, trouble: Trouble, source: TopicPartition) -> PartitionProgress:
    """Return a report as a task would make it."""
    return PartitionProgress(
        connector=look.connector,
        task=0,
        job_epoch=0,
        source=source,
        target_topic=trouble.name,
        records=0,
        bytes=0,
        position=None,
        lag=None,
        latency=EMPTY,
        state=PartitionState.FAILED if trouble.requires_action else PartitionState.RETRYING,
        error=f"{trouble.word}: {trouble.text}",
        updated_at=trouble.since,
    )


def _promoted_looks(promotions: Promotions) -> Iterator[PartitionLook]:
    """Yield a look at each partition; until the partings are known, at the first one of the topic."""
    for topic, promotion in promotions.items():
        for number in promotion.partings or (0,):
            source = TopicPartition(topic, number)
            yield PartitionLook(source, None, is_silent=False, lag_s=0.0, promotion=promotion)
