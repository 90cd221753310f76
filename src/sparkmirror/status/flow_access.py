"""Holds the connections of a flow's mirror: both clusters, its positions, offset syncs, checkpoints."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import ConnectorName, Flow
from sparkmirror.settings.configured import ConfiguredCheckpoint, ConfiguredFlow, ConfiguredSource
from sparkmirror.settings.heartbeat import MirrorHeartbeatSettings
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.positions import topics_with_positions
from sparkmirror.storage.promotions import PromotionsReader


@dataclass(frozen=True, slots=True)
class FlowAccess:
    """`checkpoint` is None where no checkpoints are emitted; `positions` reaches Connect's offsets topic."""

    flow: Flow
    connector: ConnectorName
    source: MirrorSourceSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    admin_plugins: AdminPlugins
    consumer: ConsumerSettings
    producer: ConnectionSettings
    positions: ConnectionSettings
    positions_topic: str
    positions_replication_factor: int
    heartbeat: MirrorHeartbeatSettings
    heartbeat_admin: ConnectionSettings
    checkpoint: ConfiguredCheckpoint | None

    @classmethod
    def of(cls, flow: ConfiguredFlow, source: ConfiguredSource) -> Self:
        return cls(
            flow=flow.flow,
            connector=source.name,
            source=source.settings,
            source_admin=source.source_admin,
            target_admin=source.target_admin,
            admin_plugins=source.admin_plugins,
            consumer=source.consumer_of(0),
            producer=source.producer_of(0).connection,
            positions=flow.worker_client,
            positions_topic=flow.worker.offset_topic.name,
            positions_replication_factor=flow.worker.offset_topic.replication_factor,
            heartbeat=flow.heartbeat.settings,
            heartbeat_admin=flow.heartbeat.target_admin,
            checkpoint=flow.checkpoint,
        )

    @property
    def owner(self) -> str:
        """Names the owner of the records about this flow's topics."""
        return owner_of(self.positions_topic, self.connector)

    def topics_with_positions(self, among: Collection[str]) -> Collection[str]:
        """Find which of these source topics the flow has positions in. Raises KafkaError."""
        return topics_with_positions(
            self.positions, self.positions_topic, self.connector, self.flow.source, among
        )

    def promotions_reader(self) -> PromotionsReader:
        return PromotionsReader(
            self.positions,
            self.flow.source,
            self.owner,
            is_preserving=self.source.preserved_topics is not None,
        )

    @property
    def target_consumer(self) -> ConsumerSettings:
        """Reads offsets of the target at the isolation level of the flow's consumer."""
        return ConsumerSettings(self.target_admin, read_committed=self.consumer.read_committed)
