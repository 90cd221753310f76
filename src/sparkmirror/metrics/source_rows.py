"""Keeps what a look needs of a connector's partitions from one look to the next, a row for each.

Only rows of partitions that have reported since are read again; the clock changes all of them at once, as
columns.

Pure.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from math import isnan
from typing import Final, NamedTuple

import numpy as np

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Latencies, Motion, PartitionLook
from sparkmirror.metrics.partition_meter import Counts, Held, Known, Moment, PartitionMeter, last_latency_ms
from sparkmirror.metrics.partition_table import NAN, NOT_REPORTED, Columns, Numbers, PartitionTable
from sparkmirror.metrics.task_meter import TaskState
from sparkmirror.metrics.windows import WINDOW_S, WINDOWS
from sparkmirror.storage.progress import PartitionProgress

_NOT_REPORTED: Final = (NOT_REPORTED, *[NAN] * 8, 0.0, 0.0)
_BEGAN_AT: Final = Held._fields.index("began_at")


class SourceRows:
    """Makes a table for each look. Not thread-safe; a table that was returned does not change."""

    def __init__(self, assigned: Assignment) -> None:
        self.assigned = assigned
        self._sources = [source for share in assigned for source in share]
        self._row_of = {source: row for row, source in enumerate(self._sources)}
        self._task = np.array([float(task) for task, share in enumerate(assigned) for _ in share], np.float64)
        self._meters: list[PartitionMeter | None] = [None] * len(self._sources)
        self._known = KnownRows.of(len(self._sources))
        self._held = np.tile(np.array(_NOT_REPORTED, np.float64), (len(self._sources), 1))

    def table(
        self,
        meters: Mapping[TopicPartition, PartitionMeter],
        stalled: Collection[TopicPartition],
        tasks: Mapping[int, TaskState],
        job_epoch: int | None,
        now: float,
    ) -> PartitionTable:
        """`job_epoch` is the newest job's, None where no job is known."""
        self._read_again(meters, now)
        held = Held(*self._held.T.copy())
        is_stalled = np.zeros(len(self._sources))
        is_stalled[[row for it in stalled if (row := self._row_of.get(it)) is not None]] = 1
        known, columns = self._known.copy(), self._columns(held, is_stalled, job_epoch, now)
        states = [tasks.get(task, TaskState()) for task in range(len(self.assigned))]
        numbers = [(*state.throttled, state.is_silent) for state in states]
        of_task = np.array(numbers, np.float64).reshape(-1, 3)[self._task.astype(np.intp)]
        columns = columns._replace(
            is_silent=np.maximum(columns.is_silent, of_task[:, 2]),
            source_throttled=of_task[:, 0],
            target_throttled=of_task[:, 1],
        )
        return PartitionTable(
            self._sources,
            columns,
            partial(_look, self._sources, columns, known),
            known.reports.__getitem__,
            known.latencies,
        )

    def _read_again(self, meters: Mapping[TopicPartition, PartitionMeter], now: float) -> None:
        if None in self._meters:
            self._meters = [meters.get(source) for source in self._sources]
        is_over = now - self._held[:, _BEGAN_AT] >= WINDOWS * WINDOW_S
        for row in np.flatnonzero(is_over).tolist():
            if (it := self._meters[row]) is not None:
                it.is_looked_at = False
        rows: list[int] = []
        numbers: list[float] = []
        known = self._known
        for row, it in enumerate(self._meters):
            if it is not None and not it.is_looked_at:
                known.note(row, it.held(now, numbers))
                rows.append(row)
        if rows:
            self._held[rows] = np.array(numbers, np.float64).reshape(len(rows), len(Held._fields))

    def _columns(self, held: Held, is_stalled: Numbers, job_epoch: int | None, now: float) -> Columns:
        is_known = held.state != NOT_REPORTED
        # As Kafka's `Rate`: too low rather than too high at the start.
        passed_s = now - held.began_at
        passed_s = np.where(passed_s >= WINDOW_S, passed_s, passed_s + WINDOW_S)
        has_rate = ~np.isnan(passed_s)
        return Columns(
            self._task,
            held.state,
            np.where(is_known, held.job_epoch < (job_epoch or 0), 1.0),
            is_stalled * is_known,
            np.divide(held.records, passed_s, out=np.zeros_like(passed_s), where=has_rate),
            np.divide(held.bytes, passed_s, out=np.zeros_like(passed_s), where=has_rate),
            held.lag,
            np.maximum(0.0, now - held.behind_since),
            now - held.error_since,
            held.quiet_since,
            now - held.moved_at,
            held.closed,
            *[np.zeros_like(passed_s)] * 3,
        )


class KnownRows(NamedTuple):
    """Keeps what looks refer to in lists: thousands of tuples would burden the garbage collector."""

    reports: list[PartitionProgress | None]
    earlier: list[Counts | None]
    began: list[Moment | None]
    last: list[Moment | None]

    @classmethod
    def of(cls, rows: int) -> "KnownRows":
        return cls([None] * rows, [None] * rows, [None] * rows, [None] * rows)

    def copy(self) -> "KnownRows":
        return KnownRows(self.reports.copy(), self.earlier.copy(), self.began.copy(), self.last.copy())

    def note(self, at: int, known: Known) -> None:
        self.reports[at], self.earlier[at], self.began[at], self.last[at] = known

    def row(self, at: int) -> Known | None:
        report, earlier = self.reports[at], self.earlier[at]
        if report is None or earlier is None:
            return None
        return Known(report, earlier, self.began[at], self.last[at])

    def latencies(self) -> Iterator[Latencies]:
        """Yield those of the rows that have some."""
        rows = map(self.row, range(len(self.reports)))
        return (recent for known in rows if known is not None and (recent := _recent(known)) is not None)


def _look(sources: list[TopicPartition], columns: Columns, every: KnownRows, row: int) -> PartitionLook:
    known, task = every.row(row), int(columns.task.item(row))
    if known is None:
        return PartitionLook(sources[row], task)
    moved_s, counts = _known(columns.moved_s, row), known.counts
    return PartitionLook(
        sources[row],
        task,
        known.report,
        is_silent=bool(columns.is_silent.item(row)),
        is_stalled=bool(columns.is_stalled.item(row)),
        record_rate=columns.record_rate.item(row),
        byte_rate=columns.byte_rate.item(row),
        lag_s=_known(columns.lag_s, row),
        error_for_s=_known(columns.error_for_s, row),
        quiet_since=_known(columns.quiet_since, row),
        motion=None if moved_s is None else Motion(moved_s, int(columns.closed.item(row))),
        latencies=_recent(known),
        incidents=counts.incidents,
        lost=counts.lost,
        source_throttled=columns.source_throttled.item(row),
        target_throttled=columns.target_throttled.item(row),
        records=counts.records,
        bytes=counts.bytes,
        looped=counts.looped,
        filtered=counts.filtered,
        last_latency_ms=last_latency_ms(counts, known.last),
    )


def _known(column: Numbers, row: int) -> float | None:
    value = column.item(row)
    return None if isnan(value) else value


def _recent(known: Known) -> Latencies | None:
    began = known.began
    return None if began is None else Latencies(known.counts.latency, began.counts.latency)
