"""Everything one flow needs, parsed and validated before anything is started."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.config import clients
from sparkmirror.config.mirror_maker import FlowConfig
from sparkmirror.config.transactions import TransactionSettings, transaction_settings
from sparkmirror.config.worker import WorkerSettings, worker_settings
from sparkmirror.connectors.checkpoint import MirrorCheckpointSettings
from sparkmirror.connectors.heartbeat import MirrorHeartbeatSettings
from sparkmirror.connectors.settings import (
    mirror_checkpoint_off,
    mirror_checkpoint_settings,
    mirror_heartbeat_settings,
    mirror_source_enabled,
    mirror_source_settings,
)
from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import ConnectorName, Flow


@dataclass(frozen=True, slots=True)
class SourceConnector:
    """A MirrorSourceConnector: what it is told, and how its clients connect; data clients per task."""

    name: ConnectorName
    settings: MirrorSourceSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    offset_syncs_admin: ConnectionSettings
    offset_syncs_producer: ConnectionSettings
    consumers: Mapping[int, ConsumerSettings]
    producers: Mapping[int, ProducerSettings]
    transactions: TransactionSettings | None = None
    """None where records are written without."""


@dataclass(frozen=True, slots=True)
class CheckpointConnector:
    """A MirrorCheckpointConnector: what it is told, and how its clients connect."""

    name: ConnectorName
    settings: MirrorCheckpointSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    offset_syncs_consumer: ConnectionSettings
    checkpoints_consumer: ConnectionSettings
    producer: ConnectionSettings
    records_consumer: ConsumerSettings
    """Sees of the source's records what the mirror copies."""


@dataclass(frozen=True, slots=True)
class HeartbeatConnector:
    name: ConnectorName
    settings: MirrorHeartbeatSettings
    admin: ConnectionSettings


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """`source` and `checkpoint` are None for a flow that only emits heartbeats."""

    flow: Flow
    worker: WorkerSettings
    worker_client: ConnectionSettings
    source: SourceConnector | None
    checkpoint: CheckpointConnector | None
    heartbeat: HeartbeatConnector
    checkpoint_off: str | None = None
    """The setting by which there is no checkpoint connector."""


def flow_settings(config: FlowConfig) -> FlowSettings:
    """Raises ConfigError with key, value and reason for whatever can't be used."""
    heartbeat = HeartbeatConnector(
        ConnectorName(config.heartbeat["name"].strip()),
        mirror_heartbeat_settings(config.heartbeat),
        clients.target_admin(config.heartbeat, "heartbeats-target-admin"),
    )
    enabled = mirror_source_enabled(config.source)
    worker = worker_settings(config.worker)
    settings = FlowSettings(
        flow=config.flow,
        worker=worker,
        worker_client=clients.worker_client(config.worker, "offsets"),
        source=_source_connector(config, worker) if enabled else None,
        checkpoint=_checkpoint_connector(config),
        heartbeat=heartbeat,
        checkpoint_off=mirror_checkpoint_off(config.checkpoint),
    )
    for connection in _connections(settings):
        clients.require_supported(connection)
    return settings


def _source_connector(config: FlowConfig, worker: WorkerSettings) -> SourceConnector:
    properties = config.source
    settings = mirror_source_settings(properties)
    tasks = range(settings.tasks_max)
    return SourceConnector(
        name=ConnectorName(properties["name"].strip()),
        settings=settings,
        source_admin=clients.source_admin(properties),
        target_admin=clients.target_admin(properties),
        offset_syncs_admin=clients.offset_syncs_admin(properties),
        offset_syncs_producer=clients.offset_syncs_producer(properties, 0).connection,
        consumers={task: clients.source_consumer(properties, task) for task in tasks},
        producers={task: clients.target_producer(config.worker, properties, task) for task in tasks},
        transactions=transaction_settings(worker, config.worker, properties),
    )


def _checkpoint_connector(config: FlowConfig) -> CheckpointConnector | None:
    properties = config.checkpoint
    settings = mirror_checkpoint_settings(properties)
    if settings is None:
        return None
    return CheckpointConnector(
        name=ConnectorName(properties["name"].strip()),
        settings=settings,
        source_admin=clients.source_admin(properties, "checkpoint-source-admin"),
        target_admin=clients.target_admin(properties, "checkpoint-target-admin"),
        offset_syncs_consumer=clients.offset_syncs_consumer(properties),
        checkpoints_consumer=clients.checkpoints_consumer(properties),
        producer=clients.target_producer(config.worker, properties, 0).connection,
        records_consumer=clients.source_consumer(properties, 0),
    )


def _connections(settings: FlowSettings) -> list[ConnectionSettings]:
    connections = [settings.worker_client, settings.heartbeat.admin]
    if settings.source is not None:
        connections += [settings.source.source_admin, settings.source.target_admin]
        connections += [consumer.connection for consumer in settings.source.consumers.values()]
        connections += [producer.connection for producer in settings.source.producers.values()]
    if settings.checkpoint is not None:
        connector = settings.checkpoint
        connections += [connector.source_admin, connector.target_admin, connector.producer]
        connections += [connector.offset_syncs_consumer, connector.checkpoints_consumer]
    return connections
