"""Follows the progress topic."""

from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.troubles import Trouble
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.storage.progress import (
    ConnectorTroubles,
    FlowLimits,
    JobEpoch,
    PartitionProgress,
    TaskProgress,
    parse,
)


class ProgressReader:
    """Keeps the latest record of every partition and connector. One owner."""

    def __init__(self, settings: ConnectionSettings, topic: str, *, may_be_missing: bool = False) -> None:
        self._tail = TopicTail(settings, topic, may_be_missing=may_be_missing)
        self._progress: dict[tuple[ConnectorName, TopicPartition], PartitionProgress] = {}
        self._tasks: dict[tuple[ConnectorName, int], TaskProgress] = {}
        self._job_epochs: dict[ConnectorName, JobEpoch] = {}
        self._limits: dict[ConnectorName, RateLimits] = {}
        self._troubles: dict[ConnectorName, ConnectorTroubles] = {}

    def poll(
        self, timeout_s: float = 0.0
    ) -> Mapping[tuple[ConnectorName, TopicPartition], PartitionProgress]:
        """Read the records that arrived; the result is a live view. Raises KafkaError."""
        self._take(self._tail.poll(timeout_s))
        return self._progress

    def _take(self, records: Iterable[LogRecord]) -> None:
        for parsed in map(parse, records):
            if isinstance(parsed, PartitionProgress):
                self._take_progress(parsed)
            elif isinstance(parsed, TaskProgress):
                self._tasks[parsed.connector, parsed.task] = parsed
            elif isinstance(parsed, JobEpoch):
                self._job_epochs[parsed.connector] = parsed
            elif isinstance(parsed, FlowLimits):
                self._limits[parsed.connector] = parsed.limits
            elif isinstance(parsed, ConnectorTroubles):
                self._troubles[parsed.connector] = parsed

    def _take_progress(self, report: PartitionProgress) -> None:
        key = report.connector, report.source
        known = self._progress.get(key)
        if known is None or not report.is_late(known, self._job_epochs.get(report.connector)):
            self._progress[key] = report

    def catch_up(self, deadline_s: float = 30.0) -> None:
        """Read up to the topic's end now. Raises KafkaError, RetriableError when it takes too long."""
        self._take(self._tail.read_to_end(deadline_s))

    @property
    def tasks(self) -> Mapping[tuple[ConnectorName, int], TaskProgress]:
        """The latest of each task; a live view."""
        return self._tasks

    @property
    def job_epochs(self) -> Mapping[ConnectorName, JobEpoch]:
        """The newest that was seen of each connector; a live view."""
        return self._job_epochs

    @property
    def troubles(self) -> Mapping[ConnectorName, ConnectorTroubles]:
        """The troubles of each connector at their last change; a live view."""
        return self._troubles

    def troubles_of(self, connector: ConnectorName) -> Sequence[Trouble]:
        """Return what the connector has said last that it can't do."""
        said = self._troubles.get(connector)
        return () if said is None else said.troubles

    @property
    def limits(self) -> Mapping[ConnectorName, RateLimits]:
        """The last that were seen of each connector; a live view."""
        return self._limits

    def close(self) -> None:
        self._tail.close()
