"""A connector while it runs: its threads, and what a Connect worker says of its tasks.

The same in dedicated mode and on a Connect worker.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, Protocol

from sparkmirror.connectors.flow_settings import (
    CheckpointConnector,
    FlowWorker,
    HeartbeatConnector,
    SourceConnector,
)
from sparkmirror.connectors.periodic import PeriodicThread
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.groups.checkpoint_connector import Checkpoints
from sparkmirror.metrics.families import CheckpointReading, ConnectorReading, HeartbeatReading, SourceReading
from sparkmirror.mirror.heartbeat_connector import Heartbeats
from sparkmirror.mirror.progress_watch import ProgressLog
from sparkmirror.mirror.rate_limit_updates import CurrentLimits
from sparkmirror.mirror.source_connector import MirrorSource
from sparkmirror.spark.session import Session

_TASK_INDEX: Final = "task.index"
_NO_FAILURES: Mapping[int, str] = {}


class ConnectorRun(Protocol):
    """Its `threads` are started and stopped by the owner; the rest may be asked from any thread."""

    @property
    def threads(self) -> Sequence[PeriodicThread]: ...

    @property
    def slots(self) -> int:
        """How many of Spark's slots its tasks may take; 0 where they are the driver's."""
        ...

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        """What each task is told beyond the connector's config; None before that is known."""
        ...

    def failures(self) -> Mapping[int, str]:
        """The tasks that need a person, and why."""
        ...

    def trouble(self) -> str | None:
        """Why the connector itself needs a person, while its tasks go on; None if it doesn't."""
        ...

    def topics(self) -> Collection[str]:
        """The topics on the target that it has written to (KIP-558)."""
        ...

    def reading(self) -> ConnectorReading | None:
        """What `/metrics` tells of it; None for nothing."""
        ...


class SourceRun:
    """A MirrorSourceConnector: its tasks are Spark's."""

    def __init__(
        self,
        on: FlowWorker,
        connector: SourceConnector,
        session: "Future[Session]",
        slots_of: Callable[[Session], int],
    ) -> None:
        self._of = on.flow, connector.name
        self.slots = connector.settings.tasks_max
        self.limits = CurrentLimits(on, connector)
        self._source = MirrorSource(on, connector, session, slots_of, limits=lambda: self.limits.limits)
        self._progress = ProgressLog(on.flow, on.worker_client, connector.name)
        self.threads: Sequence[PeriodicThread] = (
            self._source.thread,
            self._progress.thread,
            self.limits.thread,
        )

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        dealt = self._source.dealt
        if dealt is None:
            return None
        return [
            {
                "task.assigned.partitions": ",".join(f"{topic}-{partition}" for topic, partition in share),
                _TASK_INDEX: str(task),
            }
            for task, share in enumerate(dealt)
        ]

    def failures(self) -> Mapping[int, str]:
        return self._progress.failed_tasks()

    def trouble(self) -> str | None:
        return self._source.trouble

    def topics(self) -> Collection[str]:
        return self._progress.written_topics()

    def reading(self) -> SourceReading:
        source, now = self._source, time.monotonic()
        reading = self._progress.meter.reading(self._of, source.dealt, self.failures(), now)
        return replace(reading, gone=source.topics_gone)


class CheckpointRun:
    """A MirrorCheckpointConnector: one task, a thread of the driver, whatever `tasks.max` says."""

    slots = 0

    def __init__(self, on: FlowWorker, connector: CheckpointConnector) -> None:
        self._of = on.flow, connector.name
        self._checkpoints = Checkpoints(on, connector)
        self.threads: Sequence[PeriodicThread] = (self._checkpoints.thread,)

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        groups = self._checkpoints.groups
        return None if groups is None else [{"task.assigned.groups": ",".join(groups), _TASK_INDEX: "0"}]

    def failures(self) -> Mapping[int, str]:
        return _NO_FAILURES

    def trouble(self) -> str | None:
        return None

    def topics(self) -> Collection[str]:
        return self._checkpoints.written_topics

    def reading(self) -> CheckpointReading:
        return self._checkpoints.meter.reading(self._of, self._checkpoints.groups, time.time())


class HeartbeatRun:
    """A MirrorHeartbeatConnector."""

    slots = 0

    def __init__(self, on: FlowWorker, connector: HeartbeatConnector) -> None:
        self._of = on.flow, connector.name
        self._emits = connector.settings.emit
        self._heartbeats = Heartbeats(on, connector)
        self.threads: Sequence[PeriodicThread] = (self._heartbeats.thread,)

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        return [{}] if self._emits else []

    def failures(self) -> Mapping[int, str]:
        return _NO_FAILURES

    def trouble(self) -> str | None:
        return None

    def topics(self) -> Collection[str]:
        return self._heartbeats.written_topics

    def reading(self) -> HeartbeatReading:
        beats = self._heartbeats
        return HeartbeatReading(*self._of, {0: "running"}, beats.emitted, beats.emitted_at)


class IdleRun:
    """A connector that is told to do nothing: `enabled=false`, for example."""

    threads: Sequence[PeriodicThread] = ()
    slots = 0

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        return []

    def failures(self) -> Mapping[int, str]:
        return _NO_FAILURES

    def trouble(self) -> str | None:
        return None

    def topics(self) -> Collection[str]:
        return ()

    def reading(self) -> None:
        return None
