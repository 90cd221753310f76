"""Judges how a flow is, from what its mirror leaves in Kafka: positions, reports, heartbeats, checkpoints.

So it is told of any mirror that a file describes, Java's too, from any machine. A task reports what has
changed, Java reports nothing: of both, heartbeats show that they run.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_lag import FlowLag, LagReader
from sparkmirror.status.last_heartbeat import LastHeartbeat
from sparkmirror.storage.checkpoint_topic import read_checkpoints
from sparkmirror.storage.progress import (
    Driver,
    JobEpoch,
    PartitionProgress,
    PartitionState,
    ProgressReader,
    progress_topic,
)

_SILENT_AFTER_S: Final = 15.0
_HEARTBEATS_MISSED: Final = 3


class FlowState(StrEnum):
    """In the order in which they are looked for: the first that holds is the flow's."""

    NOT_RUNNING = "not running"
    ACTION_REQUIRED = "action required"
    RETRYING = "retrying"
    UNKNOWN = "unknown"
    CATCHING_UP = "catching up"
    CAUGHT_UP = "caught up"


_WELL: Final = (FlowState.CATCHING_UP, FlowState.CAUGHT_UP)


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """Ages are in seconds by this machine's clock, None where there is no such thing.

    `job` and `reports` are of this mirror's last copy job, if there was one; Java's mirror leaves none.
    `groups` are those with checkpoints, each with the number of its partitions. `heartbeat_interval_s` is
    infinite for a flow that emits none.
    """

    lag: FlowLag
    heartbeat_age_s: float | None = None
    heartbeat_interval_s: float = 1.0
    report_age_s: float | None = None
    job: JobEpoch | None = None
    reports: Mapping[TopicPartition, PartitionProgress] = field(default_factory=dict)
    groups: Mapping[GroupId, int] = field(default_factory=dict)
    heartbeats_topic: str = "heartbeats"

    @property
    def state(self) -> FlowState:
        return next(state for state, holds in self._verdicts() if holds)

    @property
    def is_well(self) -> bool:
        return self.state in _WELL

    @property
    def driver(self) -> Driver | None:
        """The process that has begun the last copy job."""
        return None if self.job is None else self.job.driver

    @property
    def is_stopped(self) -> bool:
        return self.job is not None and self.job.stopped

    @property
    def failed(self) -> Mapping[TopicPartition, str]:
        """With their errors."""
        return self._errors(PartitionState.FAILED)

    @property
    def retrying(self) -> Mapping[TopicPartition, str]:
        """With their errors."""
        return self._errors(PartitionState.RETRYING)

    @property
    def is_running(self) -> bool | None:
        """None where nothing shows it: no change was reported just now, and no heartbeats are emitted.

        Or the clock that dates them is so far ahead that the last one may be old. After this mirror was
        stopped in order, Java's may go on: then heartbeats do.
        """
        if self.is_stopped:
            return self._beats(_HEARTBEATS_MISSED * self.heartbeat_interval_s)
        if self.report_age_s is not None and self.report_age_s <= _SILENT_AFTER_S:
            return True
        if self.heartbeat_interval_s == float("inf"):
            return None
        return self._beats(max(_SILENT_AFTER_S, _HEARTBEATS_MISSED * self.heartbeat_interval_s))

    def _beats(self, patience_s: float) -> bool | None:
        age_s = self.heartbeat_age_s
        if age_s is None:
            return False
        return None if age_s < -patience_s else age_s <= patience_s

    @property
    def _is_behind(self) -> bool:
        """Heartbeats aside: one a second is always on its way."""
        return any(each.records for each in self.lag.partitions if each.source.topic != self.heartbeats_topic)

    def _errors(self, state: PartitionState) -> Mapping[TopicPartition, str]:
        return {
            source: report.error or "no error is reported"
            for source, report in self.reports.items()
            if report.state is state
        }

    def _verdicts(self) -> list[tuple[FlowState, bool]]:
        return [
            (FlowState.NOT_RUNNING, self.is_running is False),
            (FlowState.ACTION_REQUIRED, bool(self.failed)),
            (FlowState.RETRYING, bool(self.retrying)),
            (FlowState.UNKNOWN, bool(self.lag.unknown)),
            (FlowState.CATCHING_UP, self._is_behind),
            (FlowState.CAUGHT_UP, True),
        ]


class StatusReader:
    """One owner, who closes it. What one look has read serves the next."""

    def __init__(
        self,
        access: FlowAccess,
        now: Callable[[], float] = time.time,
        *,
        reads_ages: bool = False,
        reads_groups: bool = True,
    ) -> None:
        """`now` gives epoch seconds; `reads_ages` as in `LagReader`."""
        self._access = access
        self._now = now
        self._reads_groups = reads_groups
        # Errors are in the reports, which are read here anyway.
        self._lag = LagReader(access, lambda _: True, reads_ages=reads_ages, reads_errors=False)
        self._heartbeat = LastHeartbeat(access)
        self._progress = ProgressReader(access.positions, progress_topic(access.flow.source))

    def close(self) -> None:
        with ExitStack() as stack:
            for reader in (self._lag, self._heartbeat, self._progress):
                stack.enter_context(closing(reader))

    def read(self) -> FlowStatus:
        """Raises KafkaError."""
        connector = self._access.connector
        lag = self._lag.read()
        heartbeat_ms = self._heartbeat.read()
        unless_missing(self._progress.catch_up, None)  # Java's mirror has no such topic
        now = self._now()
        current = {each.source for each in lag.partitions}
        reports = {
            source: report
            for (name, source), report in self._progress.poll().items()
            if name == connector and source in current
        }
        return FlowStatus(
            lag,
            None if heartbeat_ms is None else now - heartbeat_ms / 1000,
            self._access.heartbeat.interval_s if self._access.heartbeat.emit else float("inf"),
            min((max(0.0, now - report.updated_at) for report in reports.values()), default=None),
            self._progress.job_epochs.get(connector),
            reports,
            self._groups() if self._reads_groups else {},
            self._access.heartbeat.topic,
        )

    def _groups(self) -> Mapping[GroupId, int]:
        checkpoint = self._access.checkpoint
        if checkpoint is None:
            return {}
        topic = checkpoint.settings.checkpoints_topic
        found: Collection[Checkpoint] = unless_missing(
            lambda: read_checkpoints(checkpoint.checkpoints, topic), ()
        )
        groups: dict[GroupId, int] = {}
        for each in found:
            groups[each.group] = groups.get(each.group, 0) + 1
        return groups
