"""When dealing a connector's partitions anew is worth it: a new copy job makes all of them pause.

Follows the progress topic for that. It only says so; the connector acts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.assignment import Assignment, assign_by_load, task_loads
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.kafka.topic_log import TopicTail
from sparkmirror.mirror.load_meter import LoadMeter
from sparkmirror.storage.progress import PartitionProgress, parse

_BUSY = 1.5
"""The busiest task carries more than this many times the mean. Below, every task has some room left."""
_HELPS = 0.8
"""… and would carry at most this much of it. A partition that is hot by itself can't be helped."""
_ANSWER_TIMEOUT_S = 2.0
"""The connector's thread has other things to do, and a stop to obey."""
_READ_TIMEOUT_S = 5.0


class ReassignmentPolicy(NamedTuple):
    """How often to look at the load, and how patient to be. The pause of a new copy job is 0.3 to 1 s."""

    look_interval_s: float = 10.0
    """Tasks report every second; reading ten reports of a partition at once costs little more than one."""
    lasting_s: float = 60.0
    """So long the same must be true each time: batch jobs and restarts of consumers come and go sooner."""
    interval_s: float = 300.0
    """From one to the next: at most 0.3 % of the time is spent on pauses, however loads change."""
    worth_bytes_s: float = 5e6
    """The mean of the tasks. A task copies a hundred times as much: sharing out less helps nobody."""


DEFAULT_REASSIGNMENT = ReassignmentPolicy()


class Running(NamedTuple):
    """A copy job, the offset of its record in the progress topic, and its tasks' partitions."""

    number: int
    announced_at: int
    dealt: Assignment


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
    """For one connector, by one owner. `now` is any clock's seconds."""

    def __init__(
        self,
        settings: ConnectionSettings,
        topic: str,
        connector: ConnectorName,
        rebalances: ReassignmentPolicy,
    ) -> None:
        self._settings = replace(
            settings, request_timeout_s=min(settings.request_timeout_s, _ANSWER_TIMEOUT_S)
        )
        self._topic = topic
        self._connector = connector
        self._rebalances = rebalances
        self._meter = LoadMeter()
        self._tail: TopicTail | None = None
        self._load: Mapping[TopicPartition, float] = {}
        self._job_epoch = 0
        self._uneven_since: float | None = None
        self._last_at: float | None = None

    @property
    def load(self) -> Mapping[TopicPartition, float]:
        """Bytes per second of each partition as of the last look; nothing before there was one."""
        return self._load

    def look(self, running: Running, now: float) -> Imbalance | None:
        """What is to be mended now by dealing anew; None while that is not worth it."""
        try:
            reports = self._reports(running)
        except SparkmirrorError:
            return None  # the progress log says that the target can't be reached
        self._meter.take(running.dealt, reports, now)
        self._load = self._meter.load(running.dealt)
        if running.number != self._job_epoch:
            self._job_epoch, self._uneven_since = running.number, None
        imbalance = self._imbalance(running.dealt)
        if imbalance is None:
            self._uneven_since = None
        elif self._uneven_since is None:
            self._uneven_since = now
        return imbalance if self._is_time(now) else None

    def done(self, now: float) -> None:
        """The partitions were dealt anew because of what `look` had said."""
        self._last_at = now

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()

    def _reports(self, running: Running) -> list[PartitionProgress]:
        """The latest of each partition of this copy job that reported since the last look."""
        latest = {record.key: record for record in self._records(running)}
        return [
            report
            for report in map(parse, latest.values())
            if isinstance(report, PartitionProgress)
            and (report.connector, report.job_epoch) == (self._connector, running.number)
        ]

    def _records(self, running: Running) -> Iterable[LogRecord]:
        """What is new in the progress topic. Raises KafkaError."""
        self._tail = self._tail or TopicTail(self._settings, self._topic, running.announced_at)
        return self._tail.read_to_end(_READ_TIMEOUT_S)

    def _imbalance(self, dealt: Assignment) -> Imbalance | None:
        """What could be mended, were it lasting."""
        carried = task_loads(dealt, self._load)
        busiest = carried.index(max(carried))
        if carried[busiest] <= _BUSY * sum(carried) / len(carried):
            return None
        rate_of = self._meter.rates
        rates = [sum(rate_of.get(partition, 0.0) for partition in task) for task in dealt]
        behind = [any(map(self._meter.is_behind, task)) for task in dealt]
        others_have_room = behind[busiest] and not all(behind)
        if sum(rates) / len(rates) < self._rebalances.worth_bytes_s and not others_have_room:
            return None
        if max(task_loads(self._dealt_anew(dealt), self._load)) > _HELPS * carried[busiest]:
            return None
        return Imbalance(busiest, rates[busiest] / (sum(rates) or 1.0), sum(rates), behind[busiest])

    def _dealt_anew(self, dealt: Assignment) -> Assignment:
        partitions = [partition for task in dealt for partition in task]
        return assign_by_load(partitions, len(dealt), self._load, dealt)

    def _is_time(self, now: float) -> bool:
        wanted = self._rebalances
        lasts = self._uneven_since is not None and now - self._uneven_since >= wanted.lasting_s
        return lasts and (self._last_at is None or now - self._last_at >= wanted.interval_s)
