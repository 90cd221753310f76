"""Runs one connector: its threads, and its tasks as a Connect worker reports them.

Dedicated mode and a Connect worker use the same runs.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Trouble, changed_cluster
from sparkmirror.groups.checkpoint_connector import CheckpointConnector
from sparkmirror.metrics.looks import ConnectorLook, GroupsLook, HeartbeatLook, SourceLook
from sparkmirror.metrics.readings import CheckpointReading, ConnectorReading, HeartbeatReading, SourceReading
from sparkmirror.mirror.event_log import EventLog
from sparkmirror.mirror.flow_clusters import ClustersAlone, FlowClusters, OppositeClusters
from sparkmirror.mirror.heartbeat_connector import HeartbeatConnector
from sparkmirror.mirror.lag_group import LagGroup
from sparkmirror.mirror.rate_limit_updates import RateLimitUpdates
from sparkmirror.mirror.shared_targets import SharedTargets
from sparkmirror.mirror.source_connector import SourceConnector
from sparkmirror.mirror.task_progress import ProgressWatch
from sparkmirror.mirror.verifying import Verifying
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import PeriodicThread
from sparkmirror.settings.configured import (
    ConfiguredCheckpoint,
    ConfiguredHeartbeat,
    ConfiguredSource,
    FlowWorker,
)
from sparkmirror.spark.session import Session
from sparkmirror.status.cluster_watch import ClusterWatch
from sparkmirror.status.topic_histories import EventHistory, MigrationHistory
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.events import EventKind
from sparkmirror.storage.progress import PartitionProgress
from sparkmirror.storage.progress_reader import ProgressReader

_TASK_INDEX: Final = "task.index"


Clusters = FlowClusters | ClustersAlone | OppositeClusters
"""Tells whether the clusters of a flow are those that are meant."""


class ConnectorRun(Protocol):
    """The owner starts and stops its `threads`; everything else is safe in any thread."""

    @property
    def threads(self) -> Sequence[PeriodicThread]: ...

    @property
    def slots(self) -> int:
        """The most Spark slots that its tasks may take; 0 where its tasks run in the driver."""
        ...

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        """Return each task's config beyond the connector's own; None before that is known."""
        ...

    def failures(self) -> Mapping[int, str]:
        """The tasks whose error requires action, with that error."""
        ...

    def troubles(self) -> Sequence[Trouble]:
        """Return what it can't do while the rest continues, the worst first."""
        ...

    def tell(self, finder: str, found: Sequence[Trouble]) -> None:
        """Take what `finder` finds now that the connector can't do."""
        ...

    def topics(self) -> Collection[str]:
        """The topics on the target that it has written to (KIP-558)."""
        ...

    @property
    def verifying(self) -> Verifying | None:
        """Compares what it has copied, when asked for; None where it copies nothing."""
        ...

    def note(self, text: str) -> None:
        """Add to its events that a user asked for something; nothing where it has no events."""
        ...

    def configured(self, settings: Mapping[str, str], leader: str | None = None) -> None:
        """Add to its events what it starts with, without secrets, and the node that leads and runs it."""
        ...

    def reading(self) -> ConnectorReading | None:
        """Return the connector's metrics for `/metrics`, or None if it has none."""
        ...

    def look(self) -> ConnectorLook | None:
        """Return what the connector knows, for `/mirror` and the pages, or None."""
        ...


class SourceRun:
    """A running MirrorSourceConnector, whose tasks are Spark tasks."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        session: "Future[Session]",
        slots_of: Callable[[Session], int],
        accepted: Collection[Alias] = (),
        shared: SharedTargets | None = None,
    ) -> None:
        """`accepted` are the clusters that an operator has accepted, whatever they were before.

        `shared` is one for all flows of this process.
        """
        self._of = on.flow, connector.name
        self._session = session
        self.slots = connector.settings.tasks_max
        self._events = EventLog(on.flow, connector.name, on.worker_client)
        self.clusters = FlowClusters(on, connector, accepted, self._events.note)
        self._events.may_write = is_meant = partial(_is_target_meant, on.flow, self.clusters)
        self.limits = RateLimitUpdates(on, connector, self._events.note, is_meant)
        self._source = SourceConnector(
            on,
            connector,
            session,
            slots_of,
            limits=lambda: self.limits.limits,
            troubles=self._events.troubles,
            clusters=self.clusters,
            shared=shared,
        )
        self._history = EventHistory(on.flow, on.worker_client)
        owner = owner_of(on.worker.offset_topic.name, connector.name)
        self._migrations = MigrationHistory(on.flow, on.worker_client, owner)
        self.verifying = Verifying(on, connector)
        self._progress = ProgressWatch(
            on.flow,
            ProgressReader(on.worker_client, StateTopic.PROGRESS.of(on.flow.source)),
            connector.name,
            lambda: self._source.assignment is not None,
            self._events.troubles,
            is_promoted=lambda topic: topic in self._source.promotions,
            clusters=lambda: [watch.look() for watch in self._clusters],
        )
        admins = connector.source_admin, connector.target_admin
        self._clusters = [
            ClusterWatch(on.flow, alias, admin, note=self._events.note)
            for alias, admin in zip(on.flow, admins, strict=True)
        ]
        self.threads: Sequence[PeriodicThread] = tuple(self._threads(on, connector))
        _tell_failures(self.threads, self._events)

    def _threads(self, on: FlowWorker, connector: ConfiguredSource) -> Iterator[PeriodicThread]:
        parts = (self._source, self._progress, self._events, self._history, self._migrations, self.limits)
        yield from (part.thread for part in parts)
        log = flow_log(__name__, on.flow, connector.name)
        yield PeriodicThread("end of comparisons", log, lambda: (), self.verifying.stop)
        yield from (cluster.thread for cluster in self._clusters)
        if connector.settings.lag_group_id:
            yield LagGroup(on.flow, connector, partial(self._reports_about, on.flow.source)).thread

    def _reports_about(self, source: Alias) -> Collection[PartitionProgress]:
        """Return none before the source is the cluster that is meant."""
        return self._progress.reports() if source in self.clusters.meant else ()

    @property
    def up(self) -> Mapping[Alias, bool | None]:
        """Whether each cluster answered the last request; None before the first. Safe in any thread."""
        return {watch.cluster: watch.is_up for watch in self._clusters}

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        assignment = self._source.assignment
        if assignment is None:
            return None
        return [
            {
                "task.assigned.partitions": ",".join(f"{topic}-{partition}" for topic, partition in share),
                _TASK_INDEX: str(task),
            }
            for task, share in enumerate(assignment)
        ]

    def failures(self) -> Mapping[int, str]:
        return self._progress.failed_tasks()

    @property
    def changed(self) -> Collection[Alias]:
        """The aliases whose addresses lead to other clusters than those meant. Safe in any thread."""
        return [watch.cluster for watch in self._clusters if watch.changed is not None]

    def troubles(self) -> Sequence[Trouble]:
        changed = [
            changed_cluster(watch.cluster, watch.changed)
            for watch in self._clusters
            if watch.changed is not None
        ]
        return [*changed, *self._events.troubles.now]

    def tell(self, finder: str, found: Sequence[Trouble]) -> None:
        self._events.troubles.tell(finder, found)

    def topics(self) -> Collection[str]:
        return self._progress.written_topics()

    def note(self, text: str) -> None:
        self._events.note(EventKind.ACTION, text)

    def configured(self, settings: Mapping[str, str], leader: str | None = None) -> None:
        led = f"{leader} leads; " if leader else ""
        written = ", ".join(f"{key}={value}" for key, value in sorted(settings.items()))
        self._events.note(EventKind.CONFIGURED, f"{led}{written or 'all settings have their defaults'}")

    def reading(self) -> SourceReading:
        reading = self._progress.meter.reading(self._measured(time.monotonic()))
        return replace(reading, gone=self._source.topics_gone, verified=self._history.verified())

    def look(self) -> SourceLook:
        now = time.monotonic()
        self._progress.rhythm.note(now)
        return replace(
            self._measured(now),
            events=self._history.look(),
            slots=self._source.slots,
            verify=self.verifying.look(),
            migrations=self._migrations.look(),
            waits_for=None if self._session.done() else "Spark, which starts",
        )

    def _measured(self, now: float) -> SourceLook:
        """The part of a look that metrics and pages share."""
        source, failures = self._source, self.failures()
        assignment = source.assignment
        tasks = range(len(assignment or ()))
        of = SourceLook(
            *self._of,
            "source",
            troubles=self.troubles(),
            clusters=[watch.look() for watch in self._clusters],
            tasks={task: "failed" if task in failures else "running" for task in tasks},
            promoted=source.promotions,
        )
        return self._progress.meter.look(of, assignment, now)


def _is_target_meant(flow: Flow, clusters: Clusters) -> bool:
    return flow.target in clusters.meant


def _threads_of(clusters: Clusters) -> Sequence[PeriodicThread]:
    return () if isinstance(clusters, FlowClusters) else (clusters.thread,)


def _tell_failures(threads: Iterable[PeriodicThread], events: EventLog) -> None:
    """Let what fails on the threads be a trouble of the connector, if it does not pass by itself."""
    for thread in threads:
        thread.tell_failures(partial(events.troubles.tell_failures, thread.name))


class _DriverRun:
    """The parts that connectors without copy tasks have in common."""

    slots = 0
    verifying = None
    _events: EventLog

    def failures(self) -> Mapping[int, str]:
        return {}

    def troubles(self) -> Sequence[Trouble]:
        return self._events.troubles.now

    def tell(self, finder: str, found: Sequence[Trouble]) -> None:
        self._events.troubles.tell(finder, found)

    def note(self, text: str) -> None:
        pass

    def configured(self, settings: Mapping[str, str], leader: str | None = None) -> None:
        pass


class CheckpointRun(_DriverRun):
    """A running MirrorCheckpointConnector: one task, a thread of the driver, whatever `tasks.max` is."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredCheckpoint,
        clusters: Clusters | None = None,
        accepted: Collection[Alias] = (),
    ) -> None:
        """`clusters` are the flow's, None without a source connector beside it; `accepted` as `SourceRun`."""
        self._of = on.flow, connector.name
        self._events = EventLog(on.flow, connector.name, on.worker_client, is_main=False)
        clusters = clusters or ClustersAlone(on, connector, accepted, self._events.troubles)
        self._events.may_write = partial(_is_target_meant, on.flow, clusters)
        self._checkpoints = CheckpointConnector(on, connector, clusters.require, self._events.troubles)
        own = (self._checkpoints.thread, self._events.thread)
        self.threads: Sequence[PeriodicThread] = (*own, *_threads_of(clusters))
        _tell_failures(self.threads, self._events)

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        groups = self._checkpoints.groups
        return None if groups is None else [{"task.assigned.groups": ",".join(groups), _TASK_INDEX: "0"}]

    def topics(self) -> Collection[str]:
        return self._checkpoints.written_topics

    def reading(self) -> CheckpointReading:
        reading = self._checkpoints.meter.reading(self._of, self._checkpoints.groups, time.time())
        return replace(reading, troubles=self.troubles())

    def look(self) -> GroupsLook:
        of = GroupsLook(
            *self._of, "checkpoint", troubles=self.troubles(), unread=self._checkpoints.thread.failing
        )
        return self._checkpoints.looks.look(of, time.monotonic())


class HeartbeatRun(_DriverRun):
    """A running MirrorHeartbeatConnector."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredHeartbeat,
        clusters: Clusters | None = None,
        accepted: Collection[Alias] = (),
        *,
        remembers: bool = True,
    ) -> None:
        """`clusters` and `accepted` as `CheckpointRun`; else they are remembered if it `remembers` them."""
        self._of = on.flow, connector.name
        self._emits = connector.settings.emit
        self._interval_s = connector.settings.interval_s
        self._events = EventLog(on.flow, connector.name, on.worker_client, is_main=False)
        clusters = clusters or ClustersAlone(
            on, connector, accepted, self._events.troubles, remembers=remembers
        )
        self._events.may_write = partial(_is_target_meant, on.flow, clusters)
        self._heartbeats = HeartbeatConnector(on, connector, clusters.require, self._events.troubles)
        own = (self._heartbeats.thread, self._events.thread)
        self.threads: Sequence[PeriodicThread] = (*own, *(_threads_of(clusters) if self._emits else ()))
        _tell_failures(self.threads, self._events)

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        return [{}] if self._emits else []

    def topics(self) -> Collection[str]:
        return self._heartbeats.written_topics

    def reading(self) -> HeartbeatReading:
        beats = self._heartbeats
        return HeartbeatReading(
            *self._of, {0: "running"}, beats.emitted, beats.emitted_at, troubles=self.troubles()
        )

    def look(self) -> HeartbeatLook:
        emitted_at = self._heartbeats.emitted_at
        return HeartbeatLook(
            *self._of,
            "heartbeat",
            troubles=self.troubles(),
            emits=self._emits,
            age_s=None if emitted_at is None else time.time() - emitted_at,
            interval_s=self._interval_s,
        )


class IdleRun(_DriverRun):
    """A running connector that does nothing, for example with `enabled=false`."""

    threads: Sequence[PeriodicThread] = ()

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        return []

    def troubles(self) -> Sequence[Trouble]:
        return ()

    def tell(self, finder: str, found: Sequence[Trouble]) -> None:
        pass

    def topics(self) -> Collection[str]:
        return ()

    def reading(self) -> None:
        return None

    def look(self) -> None:
        return None
