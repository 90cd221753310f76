"""Measures one partition from its task's reports, in total and for time windows.

It keeps a few references to reports: the values are computed when they are read. What holds until the next
report is read apart from what the clock changes, so a look at thousands of partitions asks only those that
have reported since the look before.

Pure.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from sparkmirror.domain.latency import EMPTY, LatencyHistogram
from sparkmirror.metrics.partition_table import CODES, NAN, Numbers, known_lag
from sparkmirror.metrics.time_lag import TimeLag
from sparkmirror.metrics.windows import WINDOW_S, WINDOWS, summary_of_latencies
from sparkmirror.storage.progress import PartitionProgress, PartitionState

_LAGS_EVERY_S: Final = 10.0
_LAGS_KEPT: Final = 4
_NO_INCIDENTS: Mapping[str, int] = {}
_RUNNING: Final = PartitionState.RUNNING


class _Counted(Protocol):
    """Totals of a partition. A new count of `PartitionProgress` is added here and to `Counts`."""

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
    def filtered(self) -> int: ...

    @property
    def incidents(self) -> Mapping[str, int]: ...


class Counts(NamedTuple):
    """Totals of a partition up to some time."""

    records: int = 0
    bytes: int = 0
    latency: LatencyHistogram = EMPTY
    lost: int = 0
    looped: int = 0
    filtered: int = 0
    incidents: Mapping[str, int] = _NO_INCIDENTS

    def plus(self, report: PartitionProgress | None) -> _Counted:
        """Add the report; where the task was never restarted, the sum is the report itself."""
        if report is None:
            return self
        return report if self is _NOTHING else _summed(self, report)


def _summed(counts: Counts, report: PartitionProgress) -> Counts:
    return Counts(
        counts.records + report.records,
        counts.bytes + report.bytes,
        counts.latency.merged(report.latency) if counts.latency.counts else report.latency,
        counts.lost + report.lost,
        counts.looped + report.looped,
        counts.filtered + report.filtered,
        Counter(counts.incidents) + Counter(report.incidents) if counts.incidents else report.incidents,
    )


_NOTHING: Final = Counts()
_RUNNING_CODE: Final = CODES[_RUNNING]
_COUNTED_S: Final = WINDOWS * WINDOW_S


class Moment(NamedTuple):
    """The counts at a time: those of earlier tasks, and the present task's report."""

    at: float
    earlier: Counts
    report: PartitionProgress | None

    @property
    def counts(self) -> _Counted:
        return self.earlier.plus(self.report)


class Held(NamedTuple):
    """Columns of what holds of partitions until their next reports; NaN where there is none.

    `records` and `bytes` are those since `began_at`, when the windows began that count.
    """

    state: Numbers
    job_epoch: Numbers
    lag: Numbers
    behind_since: Numbers
    error_since: Numbers
    quiet_since: Numbers
    moved_at: Numbers
    closed: Numbers
    began_at: Numbers
    records: Numbers
    bytes: Numbers


class Known(NamedTuple):
    """Holds a partition of a snapshot: the report, earlier counts, and those when the windows began.

    `last` has the counts before the last records.
    """

    report: PartitionProgress
    earlier: Counts
    began: Moment | None
    last: Moment | None

    @property
    def counts(self) -> _Counted:
        return self.earlier.plus(self.report)


def last_latency_ms(counts: _Counted, last: Moment | None) -> float:
    """The mean latency of the last records."""
    return 0.0 if last is None else summary_of_latencies(counts.latency.minus(last.counts.latency)).mean


class PartitionMeter:
    """`windows` are the starts of the present window and of the one before it; `lags` are recent lags."""

    __slots__ = (
        "before",
        "began",
        "earlier",
        "end",
        "end_since",
        "error_since",
        "first",
        "is_looked_at",
        "lags",
        "last",
        "report",
        "time_lag",
        "windows",
    )

    def __init__(self, first: int = 0) -> None:
        """`first` records of the first report are in no window."""
        self.first = first
        self.report: PartitionProgress | None = None
        self.error_since: float | None = None
        self.earlier: Counts = _NOTHING
        self.last: Moment | None = None
        """Before the last report with new records."""
        self.windows: list[Moment] = []
        self.time_lag = TimeLag()
        self.end: int | None = None
        self.end_since = 0.0
        """When the source's end offset was first seen to be `end`."""
        self.lags: deque[tuple[float, int]] = deque(maxlen=_LAGS_KEPT)
        self.began: Moment | None = None
        self.before: _Counted | None = None
        """The counts at `began`, the beginning of the windows, when that was asked for last."""
        self.is_looked_at = False
        """Whether a look has what was reported last."""

    def take(self, report: PartitionProgress, now: float) -> None:
        self.is_looked_at = False
        before = self.report
        moment = Moment(now, self.earlier, before)
        if before is not None and is_restarted(report, before):
            self.earlier = _summed(self.earlier, before)
            before, self.first = None, 0
        if report.records > (before.records if before else self.first):
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

    def held(self, now: float, numbers: list[float]) -> Known:
        """Return what a look refers to, and add the numbers of `Held`, which hold until the windows end.

        A busy mirror's partitions are all asked once a second: no more is called here than must be.
        """
        self.is_looked_at = True
        report, earlier, windows, error_since = self.report, self.earlier, self.windows, self.error_since
        assert report is not None
        began = windows[0] if windows else None
        if began is not None and now - began.at >= _COUNTED_S:
            began = self._began(now)
        if began is not self.began:
            self.began, self.before = began, None if began is None else began.counts
        records, copied, before = report.records, report.bytes, self.before
        if earlier is not _NOTHING:
            records, copied = records + earlier.records, copied + earlier.bytes
        lag = known_lag(report)
        since = self.time_lag.known_since if error_since is None else None
        if since is None:
            since = self._behind_since()
        moved_at = closed = NAN
        if lag is not None and self.lags:
            moved_at, behind = self.lags[0]
            closed = behind - lag
        numbers += (
            _RUNNING_CODE if report.state is _RUNNING else CODES[report.state],
            report.job_epoch,
            NAN if lag is None else lag,
            NAN if since is None else since,
            NAN if error_since is None else error_since,
            NAN if self.end is None else self.end_since,
            moved_at,
            closed,
            NAN if began is None else began.at,
            0.0 if before is None else records - before.records,
            0.0 if before is None else copied - before.bytes,
        )
        return Known(report, earlier, began, self.last)

    def _began(self, now: float) -> Moment | None:
        """The beginning of the windows that count."""
        for moment in self.windows:
            if now - moment.at < _COUNTED_S:
                return moment
        return None

    def lag_s(self, now: float) -> float | None:
        if self.report is not None and self.report.state is PartitionState.STANDBY:
            return 0.0
        since = self._behind_since()
        return None if since is None else max(0.0, now - since)

    def _behind_since(self) -> float | None:
        """Return when the source had the first record that is not on the target: infinity for none, or None.

        While an error is reported, records that came since then may be missing.
        """
        last_at = None
        if self.last is not None and self.time_lag.needs_age:
            last_at = self.last.at - last_latency_ms(self.counts, self.last) / 1000
        since, error_since = self.time_lag.since(last_at), self.error_since
        if error_since is None:
            return since
        return error_since if since is None else min(since, error_since)

    @property
    def lag(self) -> int | None:
        return known_lag(self.report)


def is_restarted(report: PartitionProgress, before: PartitionProgress) -> bool:
    return report.job_epoch != before.job_epoch or report.records < before.records
