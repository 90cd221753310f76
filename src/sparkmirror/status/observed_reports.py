"""Makes the reports of a mirror's partitions from what Kafka alone tells of them.

This mirror's tasks report themselves; positions and the source's ends then say what is newer. Java's report
nothing: of them neither bytes nor latencies are known.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.latency import EMPTY
from sparkmirror.metrics.looks import Motion
from sparkmirror.status.flow_lag import PartitionLag
from sparkmirror.status.flow_status import FlowStatus
from sparkmirror.storage.progress import PartitionProgress, PartitionState

_STEPS: Final = 2


class _Step(NamedTuple):
    """At a time of any clock the position was seen to have moved, and this was the lag then."""

    at: float
    following: int
    lag: int


class ObservedReports:
    """Counts records from where a partition was first seen. One owner."""

    def __init__(self, connector: ConnectorName) -> None:
        self._connector = connector
        self._first: dict[TopicPartition, int] = {}
        self._steps: dict[TopicPartition, tuple[_Step, ...]] = {}

    def motion(self, partition: TopicPartition) -> Motion | None:
        """From one step of the position to the next, since between them the lag only grows."""
        steps = self._steps.get(partition, ())
        if len(steps) < _STEPS:
            return None
        before, last = steps
        return Motion(last.at - before.at, before.lag - last.lag)

    def of(self, status: FlowStatus, now: float) -> list[PartitionProgress]:
        """One report of each partition that is mirrored; `now` is in epoch seconds."""
        own = reported_by_tasks(status)
        return [
            self._foreign(lag, now) if (report := own.get(lag.source)) is None else _newer(report, lag)
            for lag in status.lag.partitions
        ]

    def _note_step(self, lag: PartitionLag, now: float) -> None:
        steps = self._steps.get(lag.source, ())
        if (
            lag.mirrored_to is None
            or lag.records is None
            or (steps and steps[-1].following == lag.mirrored_to)
        ):
            return
        self._steps[lag.source] = (*steps, _Step(now, lag.mirrored_to, lag.records))[-_STEPS:]

    def _foreign(self, lag: PartitionLag, now: float) -> PartitionProgress:
        self._note_step(lag, now)
        following = lag.mirrored_to or 0
        first = self._first.setdefault(lag.source, following)
        if following < first:  # the topic was created again
            first = self._first[lag.source] = following
        return PartitionProgress(
            connector=self._connector,
            task=0,
            job_epoch=0,
            source=lag.source,
            target_topic=lag.target_topic,
            records=following - first,
            bytes=0,
            position=None if lag.mirrored_to is None else lag.mirrored_to - 1,
            lag=lag.records,
            latency=EMPTY,
            state=PartitionState.RUNNING,
            error=lag.why,
            updated_at=now,
        )


def reported_by_tasks(status: FlowStatus) -> Mapping[TopicPartition, PartitionProgress]:
    """What this mirror's tasks have reported; nothing once it was stopped, since another may run instead."""
    return {} if status.is_stopped else status.reports


def _newer(report: PartitionProgress, lag: PartitionLag) -> PartitionProgress:
    """The report, with the lag as of now: a task that died reports nothing."""
    reported = None if report.position is None else report.position + 1
    known = [at for at in (reported, lag.mirrored_to) if at is not None]
    following = max(known, default=None)
    records = lag.records
    if records and following is not None and lag.end is not None:
        records = max(0, lag.end - following)
    return replace(report, position=None if following is None else following - 1, lag=records)
