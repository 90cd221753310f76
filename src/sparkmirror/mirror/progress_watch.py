"""Tells people how a flow is doing: a line when a partition fails or recovers, and a summary now and then."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter

from sparkmirror.connectors.flow_log import flow_log
from sparkmirror.connectors.periodic import PeriodicThread
from sparkmirror.connectors.schedule import Job
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, Flow, TopicPartition
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.metrics.stalls import SilentPartitions, StalledPartitions
from sparkmirror.storage.progress import PartitionProgress, PartitionState, ProgressReader, progress_topic

_POLL_INTERVAL_S = 1.0
_SUMMARY_INTERVAL_S = 30.0
_NAMED_MAX = 20
"""How many partitions a single round names; a cluster that is down has thousands."""


class ProgressLog:
    """Follows one connector's records in the progress topic of its flow."""

    def __init__(self, flow: Flow, connection: ConnectionSettings, connector: ConnectorName) -> None:
        self._log = flow_log(__name__, flow)
        self._connector = connector
        self.meter = SourceMeter()
        """What `/metrics` tells."""
        self._reader = ProgressReader(connection, progress_topic(flow.source))
        self._began_at = time.time()
        self._current: list[PartitionProgress] = []
        """What tasks of this process's life reported; older records are history."""
        self._errors: dict[TopicPartition, str | None] = {}
        self._notices: dict[TopicPartition, str | None] = {}
        self._silent = SilentPartitions()
        self._stalled = StalledPartitions()
        self._cut_off = False
        self._counted = (0, 0)
        self.thread = PeriodicThread("progress log", self._log, self._jobs, self._reader.close)

    def failed_tasks(self) -> Mapping[int, str]:
        """The tasks with a partition that needs a person, and its error. Safe in any thread."""
        failed = [report for report in self._current if report.state is PartitionState.FAILED]
        return {report.task: f"{report.source}: {report.error}" for report in failed}

    def written_topics(self) -> Collection[str]:
        """The target's topics that records were copied to. Safe in any thread."""
        return {report.target_topic for report in self._current if report.records}

    def _jobs(self) -> Iterable[Job]:
        return (
            Job("follow", _POLL_INTERVAL_S, self._follow),
            Job("summarize", _SUMMARY_INTERVAL_S, self._summarize, first_after_s=_SUMMARY_INTERVAL_S),
        )

    def _follow(self) -> None:
        try:
            polled = self._reader.poll()
        except SparkmirrorError as error:
            # What would say that the target is away stands on the target.
            if not self._cut_off:
                self._log.warning("the target can't be reached: %s; trying again", error)
            self._cut_off = True
            return
        if self._cut_off:
            self._log.info("the target can be reached again")
        self._cut_off = False
        reports = [report for (connector, _), report in polled.items() if connector == self._connector]
        self._current = [report for report in reports if report.updated_at >= self._began_at]
        self.meter.take(self._current, self._reader.job_epochs.get(self._connector), time.monotonic())
        self._tell_changes()
        self._tell_notices()
        self._tell_stalls()
        self._tell_silence(reports)

    def _tell_changes(self) -> None:
        changed = _changed(self._current, attrgetter("error"), self._errors)
        for report in changed[:_NAMED_MAX]:
            if report.error is None:
                self._log.info("%s is copied again", report.source)
            else:
                level = logging.ERROR if report.state is PartitionState.FAILED else logging.WARNING
                self._log.log(level, "%s %s: %s", report.source, report.state.value, report.error)
        self._tell_unnamed(len(changed))

    def _tell_notices(self) -> None:
        changed = _changed(self._current, attrgetter("notice"), self._notices)
        noticed = [report for report in changed if report.notice is not None]
        for report in noticed[:_NAMED_MAX]:
            self._log.warning("%s: %s", report.source, report.notice)
        self._tell_unnamed(len(noticed))

    def _tell_stalls(self) -> None:
        stalls = list(self._stalled.check(self._current, time.monotonic()))
        self.meter.take_stalls(stalls)
        for report, seconds in stalls[:_NAMED_MAX]:
            if seconds is None:
                self._log.info("%s gets on again", report.source)
            else:
                self._log.warning(
                    "%s has stood at offset %s for %.0f s, %s records behind, and no error says why",
                    report.source,
                    report.position,
                    seconds,
                    f"{report.lag:,}",
                )

        self._tell_unnamed(len(stalls))

    def _tell_unnamed(self, count: int) -> None:
        if count > _NAMED_MAX:
            self._log.warning("… and %d more partitions", count - _NAMED_MAX)

    def _tell_silence(self, reports: Collection[PartitionProgress]) -> None:
        """A task that can't begin, or hangs, reports nothing: say so, rather than count the others only."""
        job_epochs = [
            job_epoch
            for connector, job_epoch in self._reader.job_epochs.items()
            if connector == self._connector
        ]
        for job_epoch, missing in self._silent.check(job_epochs, reports, time.monotonic()):
            if missing:
                self._log.warning(
                    "%d of %d partitions are not copied yet: their tasks do not report; "
                    "Spark's log has what they say",
                    missing,
                    job_epoch.partitions,
                )
            else:
                self._log.info("all %d partitions are copied", job_epoch.partitions)

    def _summarize(self) -> None:
        reports = self._current
        counted = (sum(report.records for report in reports), sum(report.bytes for report in reports))
        records, copied = (now - before for now, before in zip(counted, self._counted, strict=True))
        self._counted = counted
        if records <= 0:  # nothing new, or another copy job began to count from 0
            return
        self._log.info(
            "%s records/s, %.1f MB/s, lag %s records over %d partitions",
            f"{records / _SUMMARY_INTERVAL_S:,.0f}",
            copied / _SUMMARY_INTERVAL_S / 1e6,
            f"{sum(report.lag or 0 for report in reports):,}",
            len(reports),
        )


def _changed(
    reports: Iterable[PartitionProgress],
    said: Callable[[PartitionProgress], str | None],
    told: dict[TopicPartition, str | None],
) -> list[PartitionProgress]:
    """Those that say something else than what was told last; it counts as told now."""
    changed = [report for report in reports if said(report) != told.get(report.source)]
    told.update((report.source, said(report)) for report in changed)
    return changed
