"""Watches one flow: looks every few seconds at what its mirror leaves in Kafka, and keeps what was seen."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Final, NamedTuple

from sparkmirror.connectors.flow_log import flow_log
from sparkmirror.connectors.flow_settings import FlowSettings, SourceConfig
from sparkmirror.connectors.periodic import Job, PeriodicThread
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST
from sparkmirror.metrics.looks import ConnectorLook, HeartbeatLook, SourceLook
from sparkmirror.metrics.partition_table import table_of
from sparkmirror.metrics.readings import ConnectorReading, HeartbeatReading, SourceReading
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.metrics.stalls import STALLED_AFTER_S, StalledPartitions
from sparkmirror.status.cluster_watch import ClusterWatch
from sparkmirror.status.event_history import EventHistory
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import offsets_or_errors
from sparkmirror.status.flow_status import FlowStatus, StatusReader
from sparkmirror.status.gone_partitions import GonePartitions
from sparkmirror.status.group_watch import GroupWatch
from sparkmirror.status.migration_history import MigrationHistory
from sparkmirror.status.observed_reports import ObservedReports, reported_by_tasks
from sparkmirror.status.observed_table import POSITION_INTERVAL_S, Observed, observed_of, with_observed
from sparkmirror.storage.attempts import owner_of

_INTERVAL_S: Final = 5.0
"""Java stores positions once a minute, and each look reads all of them."""
_STALLED_AFTER_S: Final = 3 * POSITION_INTERVAL_S


class _Seen(NamedTuple):
    """`at` is a monotonic time; `oldest_s` the age of the oldest record to copy, where there is one."""

    at: float
    status: FlowStatus
    oldest_s: dict[TopicPartition, float]
    assigned: tuple[tuple[TopicPartition, ...]]
    observed: Observed

    def lag_s(self, partition: TopicPartition, now: float) -> float | None:
        """None where nothing is to be copied, or its age can't be told."""
        oldest_s = self.oldest_s.get(partition)
        return None if oldest_s is None else oldest_s + now - self.at


class FlowWatch:
    """Its `threads` look; everything else is safe in any thread."""

    def __init__(self, flow: FlowSettings, source: SourceConfig) -> None:
        self._flow = flow
        self._source = source
        access = FlowAccess.of(flow, source)
        self._reader = StatusReader(access, reads_ages=True, reads_groups=False)
        self._reports = ObservedReports(source.name)
        self._gone = GonePartitions(source.settings.refresh_topics_interval_s or inf)
        self._everything = ConsumerSettings(access.consumer.connection)
        self._meter = SourceMeter()
        self._stalled: dict[float, StalledPartitions] = {}
        self._clusters = [
            ClusterWatch(flow.flow, flow.flow.source, source.source_admin),
            ClusterWatch(flow.flow, flow.flow.target, source.target_admin),
        ]
        self._history = EventHistory(flow.flow, flow.worker_client)
        owner = owner_of(flow.worker.offset_topic.name, source.name)
        self._migrations = MigrationHistory(flow.flow, flow.worker_client, owner)
        self._groups = None if flow.checkpoint is None else GroupWatch(flow.flow, flow.checkpoint)
        self._seen: _Seen | None = None
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
        return self._seen is not None

    def _jobs(self) -> Iterable[Job]:
        return (Job("look at the mirror", _INTERVAL_S, self.look),)

    def look(self) -> None:
        """Called by the thread. Raises KafkaError."""
        now = time.monotonic()
        status = self._with_gone(self._reader.read(), now)
        reports = self._reports.of(status, time.time())
        job = None if status.is_stopped else status.job
        self._meter.take(reports, job, now)
        after_s = STALLED_AFTER_S if reported_by_tasks(status) else _STALLED_AFTER_S
        stalled = self._stalled.setdefault(after_s, StalledPartitions(after_s))
        self._meter.take_stalls(stalled.check(reports, now))
        lags = status.lag.partitions
        oldest_s = {each.source: each.seconds for each in lags if each.seconds is not None}
        sources = tuple(each.source for each in lags)
        observed = observed_of(sources, reported_by_tasks(status), oldest_s, self._reports.motion)
        self._seen = _Seen(now, status, oldest_s, (sources,), observed)

    def _with_gone(self, status: FlowStatus, now: float) -> FlowStatus:
        """With partitions that were there before, as far as the source says that they are no more."""
        left_out = {each.source: each for each in self._gone.of(status.lag.partitions, now)}
        offsets = offsets_or_errors(self._everything, left_out, LATEST)
        gone = [left_out[source] for source, offset in offsets.items() if offset is None]
        return replace(status, lag=replace(status.lag, partitions=[*status.lag.partitions, *gone]))

    # what was seen

    def looks(self) -> list[ConnectorLook]:
        source = replace(self._source_look(), unread=self._thread.failing)
        of_groups = [] if self._groups is None else [self._groups.look()]
        looks = [source, *of_groups, self._heartbeat_look()]
        return [replace(look, settings=self._flow.shown.get(look.connector, {})) for look in looks]

    def readings(self) -> list[ConnectorReading]:
        now, seen = time.monotonic(), self._seen
        of = self._flow.flow, self._source.name
        reading = self._meter.reading(of, None if seen is None else seen.assigned, (), now)
        up = {watch.cluster: is_up for watch in self._clusters if (is_up := watch.is_up) is not None}
        return [
            self._with_ages(replace(reading, up=up, verified=self._history.verified()), now),
            self._heartbeat_reading(),
        ]

    def _source_look(self) -> SourceLook:
        now, seen = time.monotonic(), self._seen
        of = SourceLook(
            self._flow.flow,
            self._source.name,
            "source",
            None if seen is None else _trouble(seen.status),
            clusters=[watch.seen() for watch in self._clusters],
            events=self._history.look(),
            migrations=self._migrations.look(),
        )
        look = self._meter.look(of, None if seen is None else seen.assigned, now)
        if seen is None:
            return look
        stored_ms = seen.status.lag.stored_ms
        return replace(
            look,
            partitions=None
            if look.partitions is None
            else with_observed(table_of(look.partitions), seen.observed, now - seen.at),
            history=[point._replace(byte_rate=None) for point in look.history]
            if not reported_by_tasks(seen.status)
            else look.history,
            is_observed=True,
            promoted=seen.status.lag.promoted,
            position_age_s=None if stored_ms is None else max(0.0, time.time() - stored_ms / 1000),
        )

    def _with_ages(self, reading: SourceReading, now: float) -> SourceReading:
        seen = self._seen
        if seen is None:
            return reading
        return replace(
            reading,
            partitions=[
                each if (lag_s := seen.lag_s(each.source, now)) is None else each._replace(lag_s=lag_s)
                for each in reading.partitions
            ],
        )

    def _heartbeat_age_s(self) -> float | None:
        seen = self._seen
        age_s = None if seen is None else seen.status.heartbeat_age_s
        return None if seen is None or age_s is None else age_s + time.monotonic() - seen.at

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


def _trouble(status: FlowStatus) -> str | None:
    if status.is_running is not False:
        return None
    if status.heartbeat_age_s is None:
        return "the mirror does not run: it has written no heartbeat"
    if status.is_stopped:
        return f"the mirror was stopped in order; its last heartbeat was {status.heartbeat_age_s:,.0f} s ago"
    return (
        f"the mirror does not run: its last heartbeat was {status.heartbeat_age_s:,.0f} s ago by this "
        "machine's clock"
    )
