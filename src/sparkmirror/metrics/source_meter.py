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
from sparkmirror.domain.ids import ConnectorName, Flow, TopicPartition
from sparkmirror.metrics.flow_history import FlowHistory, Totals
from sparkmirror.metrics.looks import CUT_OFF_AFTER_S, SourceLook
from sparkmirror.metrics.partition_meter import PartitionMeter, is_restarted
from sparkmirror.metrics.partition_table import CODES, Columns, PartitionTable
from sparkmirror.metrics.readings import PartitionReading, SourceReading
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

    def take_stalls(self, stalls: Iterable[Stall]) -> None:
        with self._lock:
            for report, seconds in stalls:
                if seconds is None:
                    self._stalled.discard(report.source)
                else:
                    self._stalled.add(report.source)
                    self._stalls += 1

    def reading(
        self, of: tuple[Flow, ConnectorName], assigned: Assignment | None, failed: Collection[int], now: float
    ) -> SourceReading:
        """The metrics of assigned partitions. `failed` are the FAILED tasks; `now` is of `take`'s clock."""
        tasks = () if assigned is None else assigned
        with self._lock:
            cut_off_s = self._cut_off_s(now)
            table = self._looked_at(tasks, now)
            read = [
                PartitionReading.of(look, task, cut_off_s)
                for look, task in zip(table, table.columns.task.astype(np.intp).tolist(), strict=True)
            ]
            every = [partition.counts for partition in self._partitions.values()]
            return SourceReading(
                *of,
                tasks={task: "failed" if task in failed else "running" for task in range(len(tasks))},
                partitions=[it for it in read if it is not None],
                states=_states(table.columns, is_known=cut_off_s is None),
                retries=self._retries,
                failures=self._failures,
                stalls=self._stalls,
                stalled=int(table.columns.is_stalled.sum()),
                lost=sum(counts.lost for counts in every),
                looped=sum(counts.looped for counts in every),
                filtered=sum(counts.filtered for counts in every),
                of_tasks=self._tasks.readings(len(tasks), now) if cut_off_s is None else {},
                incidents=_added_up(counts.incidents for counts in every if counts.incidents),
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

    def _cut_off_s(self, now: float) -> float | None:
        """Return since when no reports were read, if that is too long."""
        taken_at = self._taken_at
        return None if taken_at is None or now - taken_at <= CUT_OFF_AFTER_S else now - taken_at


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
