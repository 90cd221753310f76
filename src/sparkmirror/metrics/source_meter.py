"""Computes a source connector's metrics from its tasks' progress reports, in total and for time windows.

A task counts from 0 when it starts; counts here only grow. A partition keeps a few references to its reports:
the values are computed when the metrics are read. Reports come from the target: while none can be read, or a
partition reports an error, its lag in seconds grows by the clock, and what is not known is not there.
"""

import threading
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import ConnectorName, Flow, TopicPartition
from sparkmirror.domain.latency import EMPTY, LatencyHistogram, bucket_middle_ms
from sparkmirror.metrics.flow_history import FlowHistory, Totals
from sparkmirror.metrics.looks import Latencies, Motion, PartitionLook, SourceLook
from sparkmirror.metrics.readings import PartitionReading, SourceReading
from sparkmirror.metrics.stalls import Stall
from sparkmirror.metrics.task_meter import TaskMeter
from sparkmirror.metrics.time_lag import TimeLag
from sparkmirror.metrics.windows import NO_VALUES, WINDOW_S, WINDOWS, Summary, is_over, rate, summary_of
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState, TaskProgress

SILENT = "silent"
UNKNOWN = "unknown"
CUT_OFF_AFTER_S: Final = 10.0
"""Reports are read once a second."""
_LAGS_EVERY_S: Final = 10.0
_LAGS_KEPT: Final = 4
_NO_INCIDENTS: Mapping[str, int] = {}


class _Counted(Protocol):
    """Totals of a partition. A new count of `PartitionProgress` is added here and to `_Counts`."""

    @property
    def records(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def latency(self) -> LatencyHistogram: ...

    @property
    def lost(self) -> int: ...

    @property
    def looped(self) -> int: ...

    @property
    def incidents(self) -> Mapping[str, int]: ...


class _Counts(NamedTuple):
    """Totals of a partition up to some time."""

    records: int = 0
    bytes: int = 0
    latency: LatencyHistogram = EMPTY
    lost: int = 0
    looped: int = 0
    incidents: Mapping[str, int] = _NO_INCIDENTS

    def plus(self, report: PartitionProgress | None) -> _Counted:
        """Of a partition whose task was never restarted, what the report itself counts."""
        if report is None:
            return self
        return report if self is _NOTHING else _summed(self, report)


def _summed(counts: _Counts, report: PartitionProgress) -> _Counts:
    return _Counts(
        counts.records + report.records,
        counts.bytes + report.bytes,
        counts.latency.merged(report.latency) if counts.latency.counts else report.latency,
        counts.lost + report.lost,
        counts.looped + report.looped,
        Counter(counts.incidents) + Counter(report.incidents) if counts.incidents else report.incidents,
    )


_NOTHING: Final = _Counts()


class _Moment(NamedTuple):
    """The counts at a time: those of earlier tasks, and the present task's report."""

    at: float
    earlier: _Counts
    report: PartitionProgress | None

    @property
    def counts(self) -> _Counted:
        return self.earlier.plus(self.report)


class _Partition:
    """`windows` are the starts of the present window and of the one before it; `lags` are recent lags."""

    __slots__ = (
        "earlier",
        "end",
        "end_since",
        "error_since",
        "idle",
        "lags",
        "last",
        "report",
        "time_lag",
        "windows",
    )

    def __init__(self) -> None:
        self.report: PartitionProgress | None = None
        self.error_since: float | None = None
        self.earlier: _Counts = _NOTHING
        self.last: _Moment | None = None
        """Before the last report with new records."""
        self.windows: list[_Moment] = []
        self.time_lag = TimeLag()
        self.end: int | None = None
        self.end_since = 0.0
        """When the source's end offset was first seen to be `end`."""
        self.lags: deque[tuple[float, int]] = deque(maxlen=_LAGS_KEPT)
        self.idle: PartitionLook | None = None
        """The look of a partition that has nothing to copy: it stays the same until the next report."""

    def take(self, report: PartitionProgress, now: float) -> None:
        self.idle = None
        before = self.report
        moment = _Moment(now, self.earlier, before)
        if before is not None and _is_restarted(report, before):
            self.earlier = _summed(self.earlier, before)
            before = None
        if report.records > (before.records if before else 0):
            self.last = moment
            if not self.windows or now - self.windows[-1].at >= WINDOW_S:
                self.windows = [*self.windows[1 - WINDOWS :], moment]
        if report.lag is not None:
            position = 0 if report.position is None else report.position + 1
            self.time_lag.update(position, position + report.lag, now)
            self._note_end(position + report.lag, report.lag, now)
        if report.error is None:
            self.error_since = None
        elif self.error_since is None:
            self.error_since = now
        self.report = report

    def _note_end(self, end: int, lag: int, now: float) -> None:
        if end != self.end:
            self.end, self.end_since = end, now
        if lag == 0:
            self.lags.clear()
        elif not self.lags or now - self.lags[-1][0] >= _LAGS_EVERY_S:
            self.lags.append((now, lag))

    @property
    def counts(self) -> _Counted:
        return self.earlier.plus(self.report)

    def reading(self, task: int, now: float, cut_off_since: float | None) -> PartitionReading:
        """`cut_off_since` is when the last reports were read; None while that goes on."""
        assert self.report is not None
        counts, report = self.counts, self.report
        began = next((moment for moment in self.windows if not is_over(moment.at, now)), None)
        before = counts if began is None else began.counts
        latency = NO_VALUES if began is None else _summary(counts.latency.minus(before.latency))
        last_ms = self._last_ms
        last_age_s = None if self.last is None else last_ms / 1000 + now - self.last.at
        records, copied = counts.records - before.records, counts.bytes - before.bytes
        return PartitionReading(
            task=task,
            source=report.source,
            target_topic=report.target_topic,
            records=counts.records,
            bytes=counts.bytes,
            record_rate=0.0 if began is None else rate(records, began.at, now),
            byte_rate=0.0 if began is None else rate(copied, began.at, now),
            latency=latency._replace(last=last_ms),
            lag=None if cut_off_since is not None else self.lag,
            lag_s=_grown(self.time_lag.seconds(now, last_age_s), self._unsure_since(cut_off_since), now),
            lost=counts.lost,
            looped=counts.looped,
            incidents=counts.incidents,
        )

    def look(self, task: int, now: float, *, is_silent: bool, is_stalled: bool) -> PartitionLook:
        """References and quick sums only: it is taken of all partitions at once."""
        idle = self.idle
        if idle is not None and (idle.task, idle.is_silent, idle.is_stalled) == (task, is_silent, is_stalled):
            return idle
        report, counts = self.report, self.counts
        assert report is not None
        began = next((moment for moment in self.windows if not is_over(moment.at, now)), None)
        before = counts if began is None else began.counts
        began_at = now if began is None else began.at
        look = PartitionLook(
            report.source,
            task,
            report,
            is_silent=is_silent,
            is_stalled=is_stalled,
            record_rate=rate(counts.records - before.records, began_at, now),
            byte_rate=rate(counts.bytes - before.bytes, began_at, now),
            lag_s=self.lag_s(now),
            error_for_s=None if self.error_since is None else now - self.error_since,
            quiet_since=None if self.end is None else self.end_since,
            motion=self._motion(now),
            latencies=None if began is None else Latencies(counts.latency, before.latency),
            incidents=counts.incidents,
            lost=counts.lost,
        )
        if began is None and report.lag == 0 and report.error is None:
            self.idle = look
        return look

    def _motion(self, now: float) -> Motion | None:
        if not self.lags or self.report is None or self.report.lag is None:
            return None
        at, lag = self.lags[0]
        return Motion(now - at, lag - self.report.lag)

    def lag_s(self, now: float) -> float | None:
        if self.error_since is None and self.report is not None and self.report.lag == 0:
            return 0.0
        last_age_s = None
        if self.last is not None and self.time_lag.needs_age:
            last_age_s = self._last_ms / 1000 + now - self.last.at
        return _grown(self.time_lag.seconds(now, last_age_s), self._unsure_since(None), now)

    @property
    def _last_ms(self) -> float:
        """The mean latency of the last records."""
        if self.last is None:
            return 0.0
        return _summary(self.counts.latency.minus(self.last.counts.latency)).mean

    @property
    def lag(self) -> int | None:
        """Whoever reports an error may not know of newer records: then no lag is known instead of 0."""
        report = self.report
        return None if report is None or (report.error is not None and not report.lag) else report.lag

    def _unsure_since(self, cut_off_since: float | None) -> float | None:
        moments = [moment for moment in (cut_off_since, self.error_since) if moment is not None]
        return min(moments, default=None)


def _grown(lag_s: float | None, unsure_since: float | None, now: float) -> float | None:
    """Records that came since then may not be on the target."""
    return lag_s if unsure_since is None else max(lag_s or 0.0, now - unsure_since)


def _is_restarted(report: PartitionProgress, before: PartitionProgress) -> bool:
    return report.job_epoch != before.job_epoch or report.records < before.records


def _summary(latency: LatencyHistogram) -> Summary:
    """Exact to about 7 %, as the histogram is."""
    if not latency.counts:
        return NO_VALUES
    total = sum(count * bucket_middle_ms(bucket) for bucket, count in latency.counts.items())
    low, high = (bucket_middle_ms(of(latency.counts)) for of in (min, max))
    return summary_of(0.0, low, high, total, latency.total)


class SourceMeter:
    """One thread writes, any thread reads."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._retries = self._failures = self._stalls = 0
        self._stalled: set[TopicPartition] = set()
        self._tasks = TaskMeter()
        self._job_epoch: JobEpoch | None = None
        self._taken_at: float | None = None
        self._records = self._bytes = 0
        self._with_incidents: set[TopicPartition] = set()
        self._history = FlowHistory()
        self._lock = threading.Lock()

    def take(self, reports: Iterable[PartitionProgress], job_epoch: JobEpoch | None, now: float) -> None:
        """Take the latest report of every partition; one that was taken before costs nothing."""
        with self._lock:
            self._job_epoch, self._taken_at = job_epoch, now
            for report in reports:
                partition = self._partitions.get(report.source)
                if partition is None:
                    partition = self._partitions[report.source] = _Partition()
                if report is not partition.report:
                    self._count_states(report, partition.report)
                    self._count_totals(report, partition.report)
                    partition.take(report, now)
            if self._history.is_due(now):
                self._history.note(self._totals(now), now)

    def _count_totals(self, report: PartitionProgress, before: PartitionProgress | None) -> None:
        if before is not None and _is_restarted(report, before):
            before = None
        self._records += report.records - (0 if before is None else before.records)
        self._bytes += report.bytes - (0 if before is None else before.bytes)
        if report.incidents or report.lost:
            self._with_incidents.add(report.source)

    def _totals(self, now: float) -> Totals:
        known = list(self._partitions.values())
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
            cut_off_since = self._cut_off_since(now)
            read = [
                known.reading(task, now, cut_off_since)
                for task, share in enumerate(tasks)
                for source in share
                if (known := self._partitions.get(source))
            ]
            every = [partition.counts for partition in self._partitions.values()]
            copied = {source for share in tasks for source in share}
            return SourceReading(
                *of,
                tasks={task: "failed" if task in failed else "running" for task in range(len(tasks))},
                partitions=read,
                states=self._states(copied, is_known=cut_off_since is None),
                retries=self._retries,
                failures=self._failures,
                stalls=self._stalls,
                stalled=len(self._stalled & copied),
                lost=sum(counts.lost for counts in every),
                looped=sum(counts.looped for counts in every),
                of_tasks=self._tasks.readings(len(tasks), now) if cut_off_since is None else {},
                incidents=_added_up(counts.incidents for counts in every if counts.incidents),
            )

    def look(self, of: SourceLook, assigned: Assignment | None, now: float) -> SourceLook:
        """`of` with the assigned partitions, and what is known of all. `now` is of `take`'s clock."""
        with self._lock:
            ill = [self._partitions[source].counts for source in self._with_incidents]
            return replace(
                of,
                partitions=None
                if assigned is None
                else [
                    self._look(task, source, now) for task, share in enumerate(assigned) for source in share
                ],
                now=now,
                report_age_s=None if self._taken_at is None else now - self._taken_at,
                history=self._history.points(now),
                incidents=_added_up(counts.incidents for counts in ill),
                lost=sum(counts.lost for counts in ill),
            )

    def _look(self, task: int, source: TopicPartition, now: float) -> PartitionLook:
        known = self._partitions.get(source)
        if known is None:
            return PartitionLook(source, task)
        is_silent, is_stalled = self._is_silent(known.report), source in self._stalled
        return known.look(task, now, is_silent=is_silent, is_stalled=is_stalled)

    def _cut_off_since(self, now: float) -> float | None:
        """When reports were read last, if that is too long ago."""
        taken_at = self._taken_at
        return None if taken_at is None or now - taken_at <= CUT_OFF_AFTER_S else taken_at

    def _states(self, copied: Collection[TopicPartition], *, is_known: bool) -> Mapping[str, int]:
        states = dict.fromkeys((*(state.value.lower() for state in PartitionState), SILENT, UNKNOWN), 0)
        if not is_known:
            return {**states, UNKNOWN: len(copied)}
        for source in copied:
            known = self._partitions.get(source)
            report = None if known is None else known.report
            states[SILENT if self._is_silent(report) or report is None else report.state.value.lower()] += 1
        return states

    def _is_silent(self, report: PartitionProgress | None) -> bool:
        """Whether the present copy job has not reported the partition yet."""
        newest = self._job_epoch
        return report is None or (newest is not None and report.job_epoch < newest.number)


def _added_up(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total
