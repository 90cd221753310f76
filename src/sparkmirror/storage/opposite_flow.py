"""Reads from a flow's source what the opposite flow, which writes there, has said of its partitions."""

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.domain.preserving import REFUSED
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.storage.owned_records import read_owned
from sparkmirror.storage.progress import JobEpoch, PartitionProgress
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.storage.promotions import Promotion, parse_promotion


@dataclass(frozen=True, slots=True)
class OppositeFlow:
    """The last report of each partition by each connector, the copy jobs, and the topics that are promoted.

    `unread` is why they can't be read.
    """

    reports: Mapping[tuple[ConnectorName, TopicPartition], PartitionProgress] = field(default_factory=dict)
    job_epochs: Mapping[ConnectorName, JobEpoch] = field(default_factory=dict)
    promoted: Collection[str] = ()
    unread: KafkaError | None = None

    @classmethod
    def read(cls, source: Alias, target: ConnectionSettings) -> "OppositeFlow":
        """Read those of a flow from `source`. Blocks."""
        topic = StateTopic.PROGRESS.of(source)
        try:
            with closing(ProgressReader(target, topic, may_be_missing=True)) as reader:
                reader.catch_up()
                return cls(reader.poll(), reader.job_epochs, _promoted(source, target))
        except KafkaError as error:
            return cls(unread=error)

    def copies(self, *partitions: TopicPartition) -> bool | None:
        """Whether it has copied one of them; None until it says, in its present run, that it can't."""
        reports = [report for (_, at), report in self.reports.items() if at in partitions]
        if any(report.position is not None for report in reports):
            return True
        can_not = any(at.topic in self.promoted for at in partitions) or any(map(self._refuses, reports))
        return False if can_not else None

    def _refuses(self, report: PartitionProgress) -> bool:
        """Whether its target's log can't have its source's offsets, as its running task says."""
        job = self.job_epochs.get(report.connector)
        is_running = job is None or (job.number == report.job_epoch and not job.stopped)
        return is_running and (report.error or "").startswith(REFUSED)


def _promoted(source: Alias, target: ConnectionSettings) -> Collection[str]:
    """The topics that any connector of the flow has promoted, or promotes."""
    topic = StateTopic.MIGRATIONS.of(source)
    nothing: Mapping[tuple[str, str], Promotion] = {}
    found = unless_missing(lambda: read_owned(target, topic, None, _parse_promotion), nothing)
    return {name for _, name in found}


def _parse_promotion(record: LogRecord) -> tuple[None, tuple[str, str], Promotion | None] | None:
    """Parse a record of any connector."""
    parsed = parse_promotion(record)
    if parsed is None:
        return None
    owner, topic, promotion = parsed
    return None, (owner, topic), promotion
