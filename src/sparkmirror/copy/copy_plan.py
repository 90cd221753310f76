"""Defines the plan of one copy task: its partitions, both clusters, and the topics of its state.

A plan holds no position; the task reads that from Kafka. It travels to the executor inside the task's
closure, never through Spark's configuration, because connection settings may hold secrets.

Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.batches.batch_copying import MERGED_BYTES_MAX, CopyRules
from sparkmirror.batches.compression import CODECS
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import ConnectorName, Flow
from sparkmirror.domain.known_brokers import Address, Meant
from sparkmirror.policies.rate_limits import ALL, NO_LIMITS, RateLimits, Shares
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import DEFAULT_COPY_SETTINGS, CopySettings
from sparkmirror.storage.progress import Driver


@dataclass(frozen=True, slots=True)
class StatePlan:
    """Connect's offsets topic, and topics of our own, all on the target cluster."""

    connection: ConnectionSettings
    positions_topic: str
    progress_topic: str
    attempts_topic: str | None = None
    """The topic of attempts; None where they are not recorded, nor fenced."""


@dataclass(frozen=True, slots=True)
class OffsetSyncPlan:
    """The topic of offset syncs, and how stale they may be (`offset.lag.max`, in records)."""

    connection: ConnectionSettings
    topic: str
    lag_max: int
    flush_interval_s: float = 60.0


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    """The transactions in which records and positions are written together (KIP-618).

    Each lasts `interval_s`; None adapts that to the load. The coordinator aborts it after `timeout_s`.
    """

    transactional_id: str
    timeout_s: float
    interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A copy task of a job epoch.

    `offset_syncs` is None where their emission is disabled, `transaction` where each batch counts as soon as
    it is acknowledged.
    """

    flow: Flow
    connector: ConnectorName
    task: int
    job_epoch: int
    announced_at: int
    """The copy job's announcement is at this offset of the progress topic; records that may end it follow."""
    partitions: tuple[CopyPartition, ...]
    consumer: ConsumerSettings
    producer: ProducerSettings
    state: StatePlan
    offset_syncs: OffsetSyncPlan | None
    settings: CopySettings = DEFAULT_COPY_SETTINGS
    rate_limits: RateLimits = NO_LIMITS
    """The limits at the announcement; a change comes as a record behind it."""
    rate_shares: Shares = ALL
    buffer_bytes_max: int = 32 * 1024 * 1024
    """Fetched bytes that are not acknowledged yet, for the whole task."""
    transaction: TransactionPlan | None = None
    names_show_origin: bool = True
    """Whether topics' names show what was mirrored from the target; else producer ids do."""
    driver: Driver | None = None
    """The process that announced the copy job."""
    meant: Mapping[tuple[Address, ...], Meant] = field(default_factory=dict)
    """The clusters that its bootstrap servers are to lead to, as far as they are known."""
    attempt: int = 0
    """The number of earlier attempts of the task by Spark."""

    def rules_of(self, partition: CopyPartition) -> CopyRules:
        """The rules by which the partition's batches are copied."""
        compression = self.producer.compression
        return CopyRules(
            codec=None if compression is None else CODECS.index(compression),
            check_crcs=self.consumer.check_crcs,
            merged_bytes_max=MERGED_BYTES_MAX,
            decompressed_bytes_max=self.settings.decompressed_bytes_max,
            target_stamps_append_time=partition.target_stamps_append_time,
            is_gapless=partition.preserves_offsets,
        )

    @property
    def connections(self) -> frozenset[ConnectionSettings]:
        """The connections' settings that the task brings along."""
        own = {self.consumer.connection, self.producer.connection, self.state.connection}
        return frozenset(own if self.offset_syncs is None else own | {self.offset_syncs.connection})

    @property
    def outstanding_bytes_max(self) -> int:
        """Above `buffer_bytes_max`, because what was fetched can become more: decompressed for the target."""
        return self.buffer_bytes_max + self.settings.decompressed_bytes_max

    @property
    def writer_settings(self) -> ProducerSettings:
        """`producer`, with the connector's limit for batches that must be split."""
        return replace(self.producer, decompressed_bytes_max=self.settings.decompressed_bytes_max)
