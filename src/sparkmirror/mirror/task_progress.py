"""Says which copy tasks have failed; logs partitions that fail, stall or recover, and regular summaries."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import ConnectorName, Flow, TopicPartition
from sparkmirror.domain.quantities import as_size, counted
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord, reason_in_common
from sparkmirror.metrics.looks import THROTTLED_FROM, ClusterLook, throttled_by
from sparkmirror.metrics.partition_table import known_lag
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.metrics.stalls import SILENT_AFTER_S, SilentPartitions, StalledPartitions
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.storage.events import EventKind
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.storage.troubles import Troubles

_READ = "read the progress"
_POLL_INTERVAL_S = 1.0
_EVENTS = {
    PartitionState.RUNNING: EventKind.RETRYING,
    PartitionState.STANDBY: EventKind.CONTINUES,
    PartitionState.RETRYING: EventKind.RETRYING,
    PartitionState.FAILED: EventKind.FAILED,
}
_LEVELS = {PartitionState.FAILED: logging.ERROR, PartitionState.STANDBY: logging.INFO}
_SUMMARY_INTERVAL_S = 30.0
_IDLE_SUMMARIES = 120
"""The interval of the summary of an idle mirror, which shows that it is alive."""
_NAMED_MAX = 20
"""The most partitions that one poll names; a cluster that is down has thousands."""
_LINES_MAX: Final = 5
"""The most reasons of one poll that have a line."""
_READ_BEFORE_S: Final = 0.15
"""The time before a request at which reports are read: more than reading takes, even from afar."""
_APART_MAX_S: Final = 3.0
_APART_MIN_S: Final = 0.5


class LookRhythm:
    """Foresees the next request of a client that asks regularly, so that reports are read right before it.

    Times are of any one clock, in seconds. One thread notes requests, another one reads.
    """

    def __init__(self) -> None:
        self._looks: tuple[float, float] | None = None

    def note(self, now: float) -> None:
        """Note a request. Two requests of one moment count as one."""
        last = self._looks[1] if self._looks else float("-inf")
        if now - last >= _APART_MIN_S:
            self._looks = last, now

    def read_in_s(self, now: float) -> float | None:
        """Return in how many seconds to read next; None while no client asks regularly."""
        if self._looks is None:
            return None
        before, last = self._looks
        apart_s = last - before
        if apart_s > _APART_MAX_S or now - last > 2 * apart_s:
            return None
        due = last + apart_s - _READ_BEFORE_S
        while due <= now:
            due += apart_s
        return due - now


class ProgressWatch:
    """Follows one connector's records in the progress topic of its flow."""

    def __init__(  # noqa: PLR0913 - what it follows, and what it asks
        self,
        flow: Flow,
        reader: ProgressReader,
        connector: ConnectorName,
        is_copying: Callable[[], bool] = lambda: True,
        troubles: Troubles | None = None,
        *,
        is_promoted: Callable[[str], bool] = lambda _: False,
        clusters: Callable[[], Sequence[ClusterLook]] = lambda: (),
    ) -> None:
        """`reader` is closed when `thread` ends. No report is missed before `is_copying`: Spark may start.

        `troubles` gets the events; `clusters` tell which of them answer. The last reports of a topic that
        `is_promoted` count no more.
        """
        self._troubles = troubles or Troubles(logging.getLogger(__name__))
        self._note = self._troubles.note
        self._is_copying = is_copying
        self._is_promoted = is_promoted
        self._clusters = clusters
        self._flow = flow
        self._log = flow_log(__name__, flow)
        self._connector = connector
        self.meter = SourceMeter()
        """The numbers for `/metrics`."""
        self.rhythm = LookRhythm()
        """The times at which `meter` is looked at."""
        self._reader = reader
        self._began_at = time.time()
        self._current: list[PartitionProgress] = []
        """The reports since this process started; older ones are history."""
        self._errors: dict[TopicPartition, str | None] = {}
        self._notices: dict[TopicPartition, str | None] = {}
        self._silent = SilentPartitions()
        self._stalled = StalledPartitions()
        self._is_cut_off = False
        self._counted = (0, 0)
        self._idle_summaries = 0
        self.thread = PeriodicThread("progress watch", self._log, self._jobs, self._reader.close)

    def failed_tasks(self) -> Mapping[int, str]:
        """Return `failed_tasks` of the reports. Safe in any thread."""
        return failed_tasks(self._current)

    def written_topics(self) -> Collection[str]:
        """The target's topics that records were copied to. Safe in any thread."""
        return {report.target_topic for report in self._current if report.records}

    def reports(self) -> Collection[PartitionProgress]:
        """The newest of each partition since this process started. Safe in any thread."""
        return self._current

    def _jobs(self) -> Iterable[Job]:
        return (
            Job(_READ, _POLL_INTERVAL_S, self._follow_in_time),
            Job("summarize", _SUMMARY_INTERVAL_S, self.summarize, first_after_s=_SUMMARY_INTERVAL_S),
        )

    def _follow_in_time(self) -> None:
        self.follow()
        due_s = self.rhythm.read_in_s(time.monotonic())
        if due_s is not None:
            self.thread.hasten(_READ, due_s)

    def follow(self) -> None:
        """Read new reports and log what has changed. Called by `thread`. Raises KafkaError."""
        self._is_cut_off = True
        polled = self._reader.poll()  # from the target, which may be away
        self._is_cut_off = False
        reports = [report for (connector, _), report in polled.items() if connector == self._connector]
        self._current = [
            report
            for report in reports
            if report.updated_at >= self._began_at and not self._is_promoted(report.source.topic)
        ]
        self.meter.take(self._current, self._reader.job_epochs.get(self._connector), time.monotonic())
        self._take_tasks()
        self._log_changes()
        self._log_notices()
        self._log_stalls()
        self._log_silence(reports)

    def _take_tasks(self) -> None:
        tasks = [
            report
            for (connector, _), report in self._reader.tasks.items()
            if connector == self._connector and report.updated_at >= self._began_at
        ]
        self.meter.take_tasks(tasks, time.monotonic())
        unwritten = {topic: why for report in tasks for topic, why in report.unwritten.items()}
        self._troubles.tell(
            "tasks",
            [
                Trouble(
                    Cause.of_error(TroubleWord.NOT_WRITTEN, Subject.STATE_TOPIC, topic, KafkaError(why)),
                    topic,
                )
                for topic, why in unwritten.items()
            ],
        )

    def _log_changes(self) -> None:
        changed = _changed(self._current, attrgetter("error"), self._errors)
        for report in changed[:_NAMED_MAX]:
            if report.error is None:
                self._note(EventKind.RECOVERED, "is copied again", report.source)
            else:
                self._note(_EVENTS[report.state], str(report.error), report.source)
        groups = list(_by_cause(changed).values())
        for of in groups[:_LINES_MAX]:
            first, more = of[0], f" and {counted(len(of) - 1, 'more partition')}" if len(of) > 1 else ""
            if first.error is None:
                self._log.info("%s%s %s copied again", first.source, more, "are" if more else "is")
            else:
                level = _LEVELS.get(first.state, logging.WARNING)
                self._log.log(level, "%s%s %s: %s", first.source, more, first.state.value, first.error)
        self._log_unnamed(sum(map(len, groups[_LINES_MAX:])))

    def _log_notices(self) -> None:
        changed = _changed(self._current, attrgetter("notice"), self._notices)
        noticed = [report for report in changed if report.notice is not None]
        for report in noticed[:_NAMED_MAX]:
            self._log.warning("%s: %s", report.source, report.notice)
            self._note(EventKind.INCIDENT, str(report.notice), report.source)
        self._log_unnamed(len(noticed) - _NAMED_MAX)

    def _log_stalls(self) -> None:
        stalls = list(self._stalled.check(self._current, time.monotonic(), throttled=self._throttled()))
        self.meter.take_stalls(stalls)
        for report, seconds in stalls[:_NAMED_MAX]:
            if seconds is None:
                self._log.info("%s: continues", report.source)
                self._note(EventKind.CONTINUES, "continues", report.source)
            else:
                self._note(EventKind.STALLED, stall_line(report, seconds), report.source)
                self._log.warning("%s", stall_line(report, seconds))
        self._log_unnamed(len(stalls) - _NAMED_MAX)

    def _log_unnamed(self, count: int) -> None:
        if count > 0:
            self._log.warning("… and %s", counted(count, "more partition"))

    def _log_silence(self, reports: Collection[PartitionProgress]) -> None:
        """Warn of partitions without a report: their task can't start, or hangs."""
        if not self._is_copying():
            return
        job_epochs = [
            job_epoch
            for connector, job_epoch in self._reader.job_epochs.items()
            if connector == self._connector
        ]
        for job_epoch, missing in self._silent.check(job_epochs, reports, time.monotonic()):
            if missing:
                self._note(EventKind.SILENT, f"{missing} of {job_epoch.partitions} partitions do not report")
                self._log.warning(
                    "nothing has been reported of %d of %d partitions for %.0f s: their tasks may still be "
                    "starting; if this lasts, Spark's log says why",
                    missing,
                    job_epoch.partitions,
                    SILENT_AFTER_S,
                )
            else:
                everything = counted(job_epoch.partitions, "partition")
                self._log.info("the tasks of all %s report", everything)
                self._note(EventKind.REPORTING, f"the tasks of all {everything} report")

    def _throttled(self) -> Collection[int]:
        """Return the tasks that a quota of a cluster throttles."""
        return [task for task, shares in self.meter.throttled().items() if max(shares) >= THROTTLED_FROM]

    def _throttled_line(self) -> str:
        shares = list(self.meter.throttled().values())
        source, target = (max((share[side] for share in shares), default=0.0) for side in (0, 1))
        named = throttled_by(self._flow, source, target)
        return f"; throttled by {named}" if named else ""

    def summarize(self) -> None:
        """Log the records copied since the last call. Called by `thread`."""
        reports = self._current
        totals = (sum(report.records for report in reports), sum(report.bytes for report in reports))
        records, copied = (now - before for now, before in zip(totals, self._counted, strict=True))
        self._counted = totals
        if records < 0 or self._is_cut_off or not reports:  # a new copy job started to count from 0
            return
        away = next((it for it in self._clusters() if it.is_up is False), None)
        held = [it for it in self._troubles.now if it.cause.subject is Subject.TOPIC]
        silent = self.meter.silent(reports)
        lag = lag_line(reports, away, held, silent) + self._throttled_line()
        if records:
            self._idle_summaries = 0
            rate = f"{records / _SUMMARY_INTERVAL_S:,.1f}".removesuffix(".0")
            self._log.info("%s records/s, %s/s, %s", rate, as_size(copied / _SUMMARY_INTERVAL_S), lag)
            return
        if self._idle_summaries % _IDLE_SUMMARIES == 0:
            lags = (known_lag(it, is_silent=it.source in silent) for it in reports)
            is_known = away is None and not held and all(lag == 0 for lag in lags)
            self._log.info("%s, %s", "nothing new to copy" if is_known else "nothing was copied", lag)
        self._idle_summaries += 1


def failed_tasks(reports: Iterable[PartitionProgress]) -> Mapping[int, str]:
    """Return the tasks that are FAILED in Connect's words: those with a failed partition, with its error."""
    failed = [report for report in reports if report.state is PartitionState.FAILED]
    return {report.task: f"{report.source}: {report.error}" for report in failed}


def lag_line(
    reports: Collection[PartitionProgress],
    away: ClusterLook | None = None,
    held: Collection[Trouble] = (),
    silent: Collection[TopicPartition] = (),
) -> str:
    """Sum up the lag of the partitions whose lag is known, and count the others, with the reason.

    `away` is a cluster that does not answer: nothing is known then. `held` are why topics are not copied;
    the tasks of `silent` partitions do not report. Topics that the opposite flow copies have no lag, and are
    counted for themselves.
    """
    copied = [it for it in reports if it.state is not PartitionState.STANDBY]
    standby = len(reports) - len(copied)
    kept = f"{counted(standby, 'partition')} standby until a failback" if standby else ""
    if kept and not copied and not held:
        return kept
    lags = [known_lag(it, is_silent=it.source in silent) for it in copied]
    known = [lag for lag in lags if lag is not None and away is None]
    words = Counter(
        "silent" if it.error is None else it.state.value.lower()
        for it, lag in zip(copied, lags, strict=True)
        if lag is None and (it.error is not None or it.source in silent)
    )
    for trouble in held:
        words[trouble.word.value] += len(range(*trouble.partitions))
    total = len(copied) + sum(len(range(*it.partitions)) for it in held)
    why = _away_since(away) if away is not None else _words(words)
    if known:
        line = f"lag {counted(sum(known), 'record')} over {counted(total, 'partition')}"
        line += f", unknown for {total - len(known)} of them{why}" if total > len(known) else ""
    else:
        line = f"lag unknown of {counted(total, 'partition')}{why}"
    return f"{line}, {kept}" if kept else line


def _away_since(cluster: ClusterLook) -> str:
    if cluster.away_for_s is None:
        return f" ({cluster.alias} away)"
    since = datetime.fromtimestamp(time.time() - cluster.away_for_s).astimezone()
    return f" ({cluster.alias} away since {since:%H:%M:%S})"


def _words(counts: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{count} {word}' for word, count in sorted(counts.items()))})" if counts else ""


def _by_cause(
    changed: Iterable[PartitionProgress],
) -> Mapping[tuple[str, str], Sequence[PartitionProgress]]:
    found: dict[tuple[str, str], list[PartitionProgress]] = {}
    for report in changed:
        names = report.source.topic, report.target_topic
        reason = "" if report.error is None else reason_in_common(report.error, filter(None, names))
        found.setdefault(("" if report.error is None else report.state.value, reason), []).append(report)
    return found


def stall_line(report: PartitionProgress, seconds: float) -> str:
    """The log line of a partition that has not moved for some seconds, though it is behind."""
    return (
        f"{report.source}: stalled at offset {report.position} for {seconds:.0f} s, {report.lag:,} records "
        "behind, no error reported"
    )


def _changed(
    reports: Iterable[PartitionProgress],
    value_of: Callable[[PartitionProgress], str | None],
    logged: dict[TopicPartition, str | None],
) -> list[PartitionProgress]:
    """The reports whose value differs from the one that was logged last; it counts as logged now."""
    changed = [report for report in reports if value_of(report) != logged.get(report.source)]
    logged.update((report.source, value_of(report)) for report in changed)
    return changed
