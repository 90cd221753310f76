"""Watches one flow: looks every few seconds at what its mirror leaves in Kafka, and keeps the last look."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final, NamedTuple

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.troubles import Trouble
from sparkmirror.metrics.looks import THROTTLED_FROM, ClusterLook, ConnectorLook, HeartbeatLook, SourceLook
from sparkmirror.metrics.partition_table import table_of
from sparkmirror.metrics.readings import ConnectorReading, HeartbeatReading
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.metrics.stalls import STALLED_AFTER_S, StalledPartitions
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource
from sparkmirror.status.cluster_watch import ClusterWatch
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.status.flow_reader import FlowReader
from sparkmirror.status.group_watch import GroupWatch
from sparkmirror.status.partition_reports import GonePartitions, PartitionReports
from sparkmirror.status.topic_histories import EventHistory, MigrationHistory
from sparkmirror.status.watched_table import POSITION_INTERVAL_S, watched_table
from sparkmirror.storage.attempts import owner_of

_INTERVAL_S: Final = 5.0
"""Java stores positions once a minute, and each look reads all of them."""
_STALLED_AFTER_S: Final = 3 * POSITION_INTERVAL_S


class _LastLook(NamedTuple):
    """`at` is a monotonic time."""

    at: float
    flow: FlowLook
    assigned: Assignment


class FlowWatch:
    """Looks by `threads`, or when `look` and `look_at_groups` are called. Everything else is thread-safe."""

    def __init__(self, flow: ConfiguredFlow, source: ConfiguredSource, *, shows_groups: bool = True) -> None:
        self._flow = flow
        self._source = source
        self._reader = FlowReader(FlowAccess.of(flow, source))
        self._reports = PartitionReports()
        self._gone = GonePartitions(source.settings.refresh_topics_interval_s or inf)
        self._meter = SourceMeter(counts_from_first_look=True)
        self._stalled: dict[float, StalledPartitions] = {}
        self._clusters = [
            ClusterWatch(flow.flow, flow.flow.source, source.source_admin),
            ClusterWatch(flow.flow, flow.flow.target, source.target_admin),
        ]
        self._history = EventHistory(flow.flow, flow.worker_client)
        owner = owner_of(flow.worker.offset_topic.name, source.name)
        self._migrations = MigrationHistory(flow.flow, flow.worker_client, owner)
        groups = flow.checkpoint if shows_groups else None
        self._groups = None if groups is None else GroupWatch(flow.flow, groups)
        self._last: _LastLook | None = None
        self._away: Mapping[Alias, str] | None = None
        self.error: SparkmirrorError | None = None
        """Why the last `look_unless` could tell nothing."""
        log = flow_log(__name__, flow.flow)
        self._thread = PeriodicThread("watch", log, self._jobs, self._reader.close)

    @property
    def threads(self) -> Sequence[PeriodicThread]:
        of_groups = () if self._groups is None else (self._groups.thread,)
        return (
            self._thread,
            self._history.thread,
            self._migrations.thread,
            *of_groups,
            *(cluster.thread for cluster in self._clusters),
        )

    @property
    def has_looked(self) -> bool:
        return self._last is not None

    def _jobs(self) -> Iterable[Job]:
        return (Job("look at the mirror", _INTERVAL_S, self.look),)

    def look_unless(self, away: Mapping[Alias, str]) -> bool:
        """Look at everything as far as that can be told; whether it could. `away` has the errors of clusters.

        `looks` has the error, too.
        """
        of_flow = self._flow.flow
        self._away = {alias: error for alias, error in away.items() if alias in of_flow}
        self.error = DisconnectedError("; ".join(self._away.values())) if self._away else None
        if self.error is None:
            try:
                self.look()
            except SparkmirrorError as error:
                self.error = error
            else:
                self.look_at_groups()
        return self.error is None

    def look(self) -> None:
        """Look at everything but groups. Raises KafkaError."""
        read = self._reader.read()
        now = time.monotonic()
        flow = self._with_gone(read, now)
        reports = self._reports.of(flow)
        self._meter.take(reports, None if flow.is_stopped else flow.job, now)
        after_s = STALLED_AFTER_S if flow.reported else _STALLED_AFTER_S
        stalled = self._stalled.setdefault(after_s, StalledPartitions(after_s))
        at = time.time()
        is_throttled = any(max(shares) >= THROTTLED_FROM for shares in flow.throttled.values())
        waiting = {report.task for report in reports} if is_throttled else ()
        self._meter.take_stalls(stalled.check(reports, now, lambda it: flow.unchanged_s(it, at), waiting))
        self._last = _LastLook(now, flow, (tuple(each.source for each in reports),))

    def look_at_groups(self) -> None:
        """Look at consumer groups; an error is part of what the watch shows."""
        if self._groups is not None:
            self._groups.look_once()

    def _with_gone(self, flow: FlowLook, now: float) -> FlowLook:
        """Add partitions of earlier looks that the source no longer has."""
        left_out = {each.source: each for each in self._gone.of(flow.partitions, now)}
        gone = [left_out[source] for source in self._reader.absent(left_out)]
        return replace(flow, partitions=[*flow.partitions, *gone])

    # what is shown

    def looks(self) -> list[ConnectorLook]:
        source = replace(
            self._source_look(),
            unread=self._unread,
            events=self._history.look(),
            migrations=self._migrations.look(),
        )
        of_groups = [] if self._groups is None else [self._groups.look()]
        looks = [source, *of_groups, self._heartbeat_look()]
        return [
            replace(
                look,
                settings=self._flow.shown.get(look.connector, {}),
                troubles=look.troubles or self._published(look.connector),
            )
            for look in looks
        ]

    def _published(self, connector: ConnectorName) -> Sequence[Trouble]:
        """Return what the connector has reported that it can't do."""
        return () if self._last is None else self._last.flow.published_by(connector)

    @property
    def _unread(self) -> str | None:
        return self._thread.failing or (None if self.error is None else str(self.error))

    def readings(self) -> list[ConnectorReading]:
        reading = self._meter.reading(self._source_look())
        return [replace(reading, verified=self._history.verified()), self._heartbeat_reading()]

    def _source_look(self) -> SourceLook:
        """The part of a look that metrics and pages share."""
        last = self._last
        # What is looked at once is told as of then: a look may take longer than reports count as new.
        now = time.monotonic() if self._away is None or last is None else last.at
        of = SourceLook(
            self._flow.flow,
            self._source.name,
            "source",
            None if last is None else last.flow.trouble,
            clusters=self._cluster_looks(),
            is_observed=True,
            is_running=None,
            waits_for="a first look at both clusters",
        )
        look = self._meter.look(of, None if last is None else last.assigned, now)
        if last is None:
            return look
        flow = last.flow
        return replace(
            look,
            partitions=None
            if look.partitions is None
            else watched_table(table_of(look.partitions), flow, self._reports.motion, now - last.at),
            history=look.history if flow.reported else [it._replace(byte_rate=None) for it in look.history],
            is_running=flow.is_running,
            is_stopped=flow.stopped_in_order,
            promoted=flow.promoted,
            troubles=flow.troubles,
            position_age_s=None if flow.stored_ms is None else max(0.0, time.time() - flow.stored_ms / 1000),
        )

    def _cluster_looks(self) -> list[ClusterLook]:
        """Return the clusters by the requests before the last reading, or by those of the threads."""
        away = self._away
        if away is None:
            return [watch.look() for watch in self._clusters]
        return [ClusterLook(it, it not in away, error=away.get(it)) for it in self._flow.flow]

    def _heartbeat_age_s(self) -> float | None:
        last = self._last
        age_s = None if last is None else last.flow.heartbeat_age_s
        return None if last is None or age_s is None else age_s + time.monotonic() - last.at

    def _heartbeat_look(self) -> HeartbeatLook:
        heartbeat = self._flow.heartbeat
        return HeartbeatLook(
            self._flow.flow,
            heartbeat.name,
            "heartbeat",
            emits=heartbeat.settings.emit,
            age_s=self._heartbeat_age_s(),
            interval_s=max(heartbeat.settings.interval_s, _INTERVAL_S),
        )

    def _heartbeat_reading(self) -> HeartbeatReading:
        age_s = self._heartbeat_age_s()
        last_at = None if age_s is None else time.time() - age_s
        return HeartbeatReading(self._flow.flow, self._flow.heartbeat.name, {}, 0, last_at)
