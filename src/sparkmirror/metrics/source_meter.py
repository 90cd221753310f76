"""Computes a source connector's metrics from its tasks' progress reports, in total and for time windows.

A task counts from 0 when it starts; counts here only grow. A partition keeps a few references to its reports:
the values are computed when the metrics are read. Reports come from the target: while none can be read, or a
partition reports an error, its lag in seconds grows by the clock, and what is not known is not there.
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.flow_history import FlowHistory, Totals
from sparkmirror.metrics.looks import CUT_OFF_AFTER_S, SourceLook
from sparkmirror.metrics.partition_meter import PartitionMeter, is_restarted
from sparkmirror.metrics.partition_table import CODES, Columns, PartitionTable, table_of
from sparkmirror.metrics.readings import SourceReading, incomplete_topics, partition_readings
from sparkmirror.metrics.source_rows import SourceRows
from sparkmirror.metrics.stalls import Stall
from sparkmirror.metrics.task_meter import TaskMeter, Throttled
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState, TaskProgress

SILENT = "silent"
UNKNOWN = "unknown"


class SourceMeter:
    """Measures all partitions of a connector. One thread writes, any thread reads."""

    def __init__(self, *, counts_from_first_look: bool = False) -> None:
        """`counts_from_first_look`: what a first report counts was copied before, in no window of now."""
        self._counts_from_first_look = counts_from_first_look
        self._partitions: dict[TopicPartition, PartitionMeter] = {}
        self._retries = self._failures = self._stalls = 0
        self._stalled: set[TopicPartition] = set()
        self._tasks = TaskMeter()
        self._job_epoch: JobEpoch | None = None
        self._job_since: float | None = None
        self._taken_at: float | None = None
        self._records = self._bytes = 0
        self._with_incidents: set[TopicPartition] = set()
        self._history = FlowHistory()
        self._rows: SourceRows | None = None
        self._lock = threading.Lock()

    def take(self, reports: Collection[PartitionProgress], job_epoch: JobEpoch | None, now: float) -> None:
        """Take the latest report of every partition that is mirrored; one taken before costs nothing."""
        with self._lock:
            if _number(job_epoch) != _number(self._job_epoch):
                self._job_since = now
            self._job_epoch, self._taken_at = job_epoch, now
            for report in reports:
                partition = self._partitions.get(report.source)
                if partition is None:
                    first = report.records if self._counts_from_first_look else 0
                    partition = self._partitions[report.source] = PartitionMeter(first)
                if report is not partition.report:
                    self._count_states(report, partition.report)
                    self._count_totals(report, partition.report)
                    partition.take(report, now)
            if self._history.is_due(now):
                self._history.note(self._totals(reports, now), now)

    def _count_totals(self, report: PartitionProgress, before: PartitionProgress | None) -> None:
        if before is not None and is_restarted(report, before):
            before = None
        self._records += report.records - (0 if before is None else before.records)
        self._bytes += report.bytes - (0 if before is None else before.bytes)
        if report.incidents or report.lost:
            self._with_incidents.add(report.source)

    def _totals(self, reports: Collection[PartitionProgress], now: float) -> Totals:
        """Add up the lag of these partitions only: one that is no longer mirrored keeps its last lag."""
        known = [self._partitions[report.source] for report in reports]
        lags = [lag for partition in known if (lag := partition.lag) is not None]
        ages = [age for partition in known if (age := partition.lag_s(now)) is not None]
        return Totals(
            self._records,
            self._bytes,
            sum(lags) if len(lags) == len(known) else None,
            max(ages, default=0.0) if len(ages) == len(known) else None,
        )

    def _count_states(self, report: PartitionProgress, before: PartitionProgress | None) -> None:
        if before is None or report.state is not before.state:
            self._retries += report.state is PartitionState.RETRYING
            self._failures += report.state is PartitionState.FAILED
            self._tasks.count(report)

    def take_tasks(self, reports: Iterable[TaskProgress], now: float) -> None:
        """Take the latest report of every task; `now` is of `take`'s clock."""
        with self._lock:
            self._tasks.take(reports, now)

    def throttled(self) -> Mapping[int, Throttled]:
        """Return how much of the last minute the clusters throttled each task."""
        with self._lock:
            return self._tasks.throttled()

    def silent(self, reports: Iterable[PartitionProgress]) -> Collection[TopicPartition]:
        """Return the partitions that the newest copy job's tasks do not report, as of the last `take`."""
        with self._lock:
            newest = _number(self._job_epoch) or 0
            states = self._tasks.states(self._taken_at or 0.0)
        silent = {task for task, state in states.items() if state.is_silent}
        return {it.source for it in reports if it.job_epoch < newest or it.task in silent}

    def take_stalls(self, stalls: Iterable[Stall]) -> None:
        with self._lock:
            for report, seconds in stalls:
                if seconds is None:
                    self._stalled.discard(report.source)
                else:
                    self._stalled.add(report.source)
                    self._stalls += 1

    def reading(self, of: SourceLook) -> SourceReading:
        """The metrics of the partitions of `of`, which `look` has returned, and what was counted of all."""
        columns, is_known = table_of(of.partitions or ()).columns, (of.report_age_s or 0.0) <= CUT_OFF_AFTER_S
        partitions = partition_readings(of)
        with self._lock:
            every = [partition.counts for partition in self._partitions.values()]
            return SourceReading(
                of.flow,
                of.connector,
                tasks=of.tasks,
                troubles=of.troubles,
                partitions=partitions,
                states=_states(columns, is_known=is_known),
                retries=self._retries,
                failures=self._failures,
                stalls=self._stalls,
                stalled=int(columns.is_stalled.sum()),
                lost=sum(counts.lost for counts in every),
                looped=sum(counts.looped for counts in every),
                filtered=sum(counts.filtered for counts in every),
                up={it.alias: it.is_up for it in of.clusters if it.is_up is not None},
                of_tasks=self._tasks.readings(len(of.tasks), of.now) if is_known else {},
                incidents=_added_up(counts.incidents for counts in every if counts.incidents),
                incomplete=incomplete_topics(of),
            )

    def look(self, of: SourceLook, assigned: Assignment | None, now: float) -> SourceLook:
        """`of` with the assigned partitions, and what is known of all. `now` is of `take`'s clock."""
        with self._lock:
            ill = [self._partitions[source].counts for source in self._with_incidents]
            return replace(
                of,
                partitions=None if assigned is None else self._looked_at(assigned, now),
                now=now,
                report_age_s=None if self._taken_at is None else now - self._taken_at,
                history=self._history.points(now),
                driver=None if self._job_epoch is None else self._job_epoch.driver,
                begun_s=None if self._job_since is None else now - self._job_since,
                incidents=_added_up(counts.incidents for counts in ill),
                lost=sum(counts.lost for counts in ill),
            )

    def _looked_at(self, assigned: Assignment, now: float) -> PartitionTable:
        if self._rows is None or self._rows.assigned != assigned:
            self._rows = SourceRows(assigned)
            for partition in self._partitions.values():
                partition.is_looked_at = False
        newest = None if self._job_epoch is None else self._job_epoch.number
        # A driver that can't read reports says so itself.
        tasks = self._tasks.states(now if self._taken_at is None else self._taken_at)
        return self._rows.table(self._partitions, self._stalled, tasks, newest, now)


def _states(of: Columns, *, is_known: bool) -> Mapping[str, int]:
    names = (SILENT, *(state.value.lower() for state in CODES), UNKNOWN)
    codes = np.where(of.is_silent, 0.0, of.state) if is_known else np.full_like(of.state, len(names) - 1)
    counts = np.bincount(codes.astype(np.intp), minlength=len(names)).tolist()
    return dict(zip(names, counts, strict=True))


def _number(job_epoch: JobEpoch | None) -> int | None:
    return None if job_epoch is None else job_epoch.number


def _added_up(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total
