"""Decides when to reassign a connector's partitions, since the new copy job pauses all of them.

It follows the progress topic and returns its decision; the connector acts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.assignment import Assignment, assign_by_load, task_loads
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.mirror.load_meter import LoadMeter
from sparkmirror.storage.progress import PartitionProgress, parse

_BUSY = 1.5
"""The busiest task carries more than this many times the mean. Below, every task has some room left."""
_HELPS = 0.8
"""… and would carry at most this much of it afterwards: reassigning does not help a single hot partition."""
_ANSWER_TIMEOUT_S = 2.0
"""The connector's thread has other jobs, and must notice a stop."""
_READ_TIMEOUT_S = 5.0


class ReassignmentPolicy(NamedTuple):
    """The intervals and thresholds of reassignment. A new copy job pauses partitions for 0.3 to 1 s."""

    check_interval_s: float = 10.0
    """Tasks report every second; reading ten reports of a partition at once costs little more than one."""
    lasting_s: float = 60.0
    """The imbalance must last this long: batch jobs and restarts of consumers are shorter."""
    interval_s: float = 300.0
    """The least time between two: at most 0.3 % of the time is spent on pauses, however loads change."""
    mean_bytes_s_min: float = 5e6
    """The least mean of the tasks. A task copies a hundred times as much: reassigning less gains nothing."""


DEFAULT_REASSIGNMENT = ReassignmentPolicy()


class Running(NamedTuple):
    """A copy job, the offset of its record in the progress topic, and its tasks' partitions."""

    number: int
    announced_at: int
    assignment: Assignment


class Imbalance(NamedTuple):
    """`share` is the busiest task's part of `bytes_s`, which all tasks copy together."""

    task: int
    share: float
    bytes_s: float
    is_behind: bool

    def __str__(self) -> str:
        behind = " and was behind" if self.is_behind else ""
        return f"task {self.task} had {self.share * 100:.0f} % of {self.bytes_s / 1e6:.1f} MB/s{behind}"


class Reassignment:
    """Decides for one connector. Not thread-safe. `now` is in seconds of any clock."""

    def __init__(
        self,
        settings: ConnectionSettings,
        topic: str,
        connector: ConnectorName,
        policy: ReassignmentPolicy,
    ) -> None:
        self._settings = replace(
            settings, request_timeout_s=min(settings.request_timeout_s, _ANSWER_TIMEOUT_S)
        )
        self._topic = topic
        self._connector = connector
        self._policy = policy
        self._meter = LoadMeter()
        self._tail: TopicTail | None = None
        self._load: Mapping[TopicPartition, float] = {}
        self._job_epoch = 0
        self._uneven_since: float | None = None
        self._last_at: float | None = None

    @property
    def load(self) -> Mapping[TopicPartition, float]:
        """Bytes per second of each partition as of the last check; empty before the first."""
        return self._load

    def check(self, running: Running, now: float) -> Imbalance | None:
        """The imbalance that reassigning fixes now; None while the pause is not worth it."""
        try:
            reports = self._reports(running)
        except SparkmirrorError:
            return None  # the progress watch logs that the target can't be reached
        self._meter.take(running.assignment, reports, now)
        self._load = self._meter.load(running.assignment)
        if running.number != self._job_epoch:
            self._job_epoch, self._uneven_since = running.number, None
        imbalance = self._imbalance(running.assignment)
        if imbalance is None:
            self._uneven_since = None
        elif self._uneven_since is None:
            self._uneven_since = now
        return imbalance if self._is_time(now) else None

    def done(self, now: float) -> None:
        """Note that the partitions were reassigned."""
        self._last_at = now

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()

    def _reports(self, running: Running) -> list[PartitionProgress]:
        """The latest report of each partition of this copy job since the last check."""
        latest = {record.key: record for record in self._records(running)}
        return [
            report
            for report in map(parse, latest.values())
            if isinstance(report, PartitionProgress)
            and (report.connector, report.job_epoch) == (self._connector, running.number)
        ]

    def _records(self, running: Running) -> Iterable[LogRecord]:
        """The new records of the progress topic. Raises KafkaError."""
        self._tail = self._tail or TopicTail(self._settings, self._topic, running.announced_at)
        return self._tail.read_to_end(_READ_TIMEOUT_S)

    def _imbalance(self, assignment: Assignment) -> Imbalance | None:
        """The imbalance that reassigning would fix, whether it lasts or not."""
        carried = task_loads(assignment, self._load)
        busiest = carried.index(max(carried))
        if carried[busiest] <= _BUSY * sum(carried) / len(carried):
            return None
        rate_of = self._meter.rates
        rates = [sum(rate_of.get(partition, 0.0) for partition in task) for task in assignment]
        behind = [any(map(self._meter.is_behind, task)) for task in assignment]
        others_have_room = behind[busiest] and not all(behind)
        if sum(rates) / len(rates) < self._policy.mean_bytes_s_min and not others_have_room:
            return None
        if max(task_loads(self._reassigned(assignment), self._load)) > _HELPS * carried[busiest]:
            return None
        return Imbalance(busiest, rates[busiest] / (sum(rates) or 1.0), sum(rates), behind[busiest])

    def _reassigned(self, assignment: Assignment) -> Assignment:
        partitions = [partition for task in assignment for partition in task]
        return assign_by_load(partitions, len(assignment), self._load, assignment)

    def _is_time(self, now: float) -> bool:
        policy = self._policy
        lasts = self._uneven_since is not None and now - self._uneven_since >= policy.lasting_s
        return lasts and (self._last_at is None or now - self._last_at >= policy.interval_s)
