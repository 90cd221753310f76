"""How to reach what a flow's mirror works on and leaves: both clusters, its positions, syncs, checkpoints."""

from dataclasses import dataclass

from sparkmirror.config.admin_plugins import DIRECTLY, AdminPlugins
from sparkmirror.connectors.checkpoint import MirrorCheckpointSettings
from sparkmirror.connectors.heartbeat import MirrorHeartbeatSettings
from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import ConnectorName, Flow


@dataclass(frozen=True, slots=True)
class CheckpointAccess:
    """Of a flow that has a checkpoint connector."""

    settings: MirrorCheckpointSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    offset_syncs: ConnectionSettings
    checkpoints: ConnectionSettings
    admin_plugins: AdminPlugins = DIRECTLY


@dataclass(frozen=True, slots=True)
class FlowAccess:
    """`checkpoint` is None where no checkpoints are emitted; `positions` reaches Connect's offsets topic."""

    flow: Flow
    connector: ConnectorName
    source: MirrorSourceSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    consumer: ConsumerSettings
    positions: ConnectionSettings
    positions_topic: str
    heartbeat: MirrorHeartbeatSettings
    heartbeat_admin: ConnectionSettings
    checkpoint: CheckpointAccess | None

    @property
    def target_consumer(self) -> ConsumerSettings:
        """Asks the target for offsets, as a consumer of the same isolation would see them."""
        return ConsumerSettings(self.target_admin, read_committed=self.consumer.read_committed)
