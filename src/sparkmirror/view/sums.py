"""Sums the values of partitions over groups of them: topics, tasks, or all of a flow."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from sparkmirror.metrics.partition_table import Indices, Numbers
from sparkmirror.view.partitions import Partitions, number, whole
from sparkmirror.view.values import Lag, Speed, State
from sparkmirror.view.words import WORDS, Word


class Sums:
    """`rows` has the partitions group by group; each group begins at one of `starts`, and none is empty."""

    def __init__(self, partitions: Partitions, rows: Indices, starts: Indices) -> None:
        self._partitions = partitions
        self._rows = rows
        self._starts = starts
        self._bounds = [*starts.tolist(), len(rows)]
        self._shown = partitions.shown.of(rows)

    def __len__(self) -> int:
        return len(self._starts)

    def rows(self, group: int) -> Indices:
        return self._rows[self._bounds[group] : self._bounds[group + 1]]

    @cached_property
    def severity(self) -> Indices:
        """Has the severity of each group's worst partition."""
        return np.minimum.reduceat(self._shown.severity, self._starts)

    @cached_property
    def records(self) -> Numbers:
        """The lag in records: unknown as soon as that of one part is."""
        return np.add.reduceat(self._shown.lag, self._starts)

    @cached_property
    def _seconds(self) -> Numbers:
        return np.maximum.reduceat(self._shown.lag_s, self._starts)

    @cached_property
    def _left_s(self) -> Numbers:
        """The longest of those that catch up, infinity as soon as one of them can't tell it."""
        return np.maximum.reduceat(self._shown.left_s, self._starts)

    @cached_property
    def _quiet_since(self) -> Numbers:
        return np.maximum.reduceat(self._shown.quiet_since, self._starts)

    @cached_property
    def _speeds(self) -> tuple[Numbers, Numbers]:
        return self._known_sum(self._shown.record_rate), self._known_sum(self._shown.byte_rate)

    def _known_sum(self, values: Numbers) -> Numbers:
        is_known = ~np.isnan(values)
        sums = np.add.reduceat(np.where(is_known, values, 0.0), self._starts)
        return np.where(np.logical_or.reduceat(is_known, self._starts), sums, np.nan)

    def state(self, group: int) -> State:
        """Return the state of the first of its worst partitions."""
        rows = self.rows(group)
        return self._partitions.state(int(rows[np.argmin(self._partitions.shown.severity[rows])]))

    def lag(self, group: int) -> Lag:
        return Lag(whole(self.records[group]), number(self._seconds[group]))

    def left_s(self, group: int) -> float | None:
        left_s = float(self._left_s[group])
        return left_s if np.isfinite(left_s) else None

    def speed(self, group: int) -> Speed:
        records, copied = self._speeds
        return Speed(number(records[group]), number(copied[group]))

    def quiet_since(self, group: int) -> float | None:
        return number(self._quiet_since[group])

    def words(self, group: int) -> Mapping[Word, int]:
        counts = np.bincount(self._partitions.shown.severity[self.rows(group)])
        return {WORDS[at]: int(counts[at]) for at in np.flatnonzero(counts)}
