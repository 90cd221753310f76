"""Parses and validates the settings of a flow's worker, connectors and clients before anything is started."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from sparkmirror.config import client_layers
from sparkmirror.config.admin_plugins import DIRECTLY, AdminPlugins, admin_plugins
from sparkmirror.config.masking import masked
from sparkmirror.config.mirror_maker import FlowProperties
from sparkmirror.config.plugin_points import REPLICATION_POLICY
from sparkmirror.config.properties import Properties
from sparkmirror.config.transaction_settings import TransactionSettings, transaction_settings
from sparkmirror.config.worker_settings import WorkerSettings, worker_settings
from sparkmirror.domain.client_settings import (
    ConnectionSettings,
    ConsumerSettings,
    OffsetReset,
    ProducerSettings,
)
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings
from sparkmirror.settings.heartbeat import MirrorHeartbeatSettings
from sparkmirror.settings.parsing import (
    mirror_checkpoint_off,
    mirror_checkpoint_settings,
    mirror_heartbeat_settings,
    mirror_source_enabled,
    mirror_source_settings,
)
from sparkmirror.settings.source import PRESERVED_TOPICS, MirrorSourceSettings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConfiguredSource:
    """A MirrorSourceConnector's settings and those of its clients.

    `consumer_of` and `producer_of` make those of a task, which differ only in the client's id.
    """

    name: ConnectorName
    settings: MirrorSourceSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    offset_syncs_admin: ConnectionSettings
    offset_syncs_producer: ConnectionSettings
    consumer_of: Callable[[int], ConsumerSettings]
    producer_of: Callable[[int], ProducerSettings]
    transactions: TransactionSettings | None = None
    """Settings of transactions; None where records are written without any."""
    admin_plugins: AdminPlugins = DIRECTLY

    @property
    def writes_producer_ids(self) -> bool:
        """Whether every batch of the flow on the target carries one of its producer ids."""
        return self.transactions is not None or self.producer_of(0).idempotent


@dataclass(frozen=True, slots=True)
class ConfiguredCheckpoint:
    """A MirrorCheckpointConnector's settings and those of its clients."""

    name: ConnectorName
    settings: MirrorCheckpointSettings
    source_admin: ConnectionSettings
    target_admin: ConnectionSettings
    offset_syncs_consumer: ConnectionSettings
    checkpoints_consumer: ConnectionSettings
    producer: ConnectionSettings
    records_consumer: ConsumerSettings
    """Reads the records of the source that the mirror copies."""
    admin_plugins: AdminPlugins = DIRECTLY


@dataclass(frozen=True, slots=True)
class ConfiguredHeartbeat:
    name: ConnectorName
    settings: MirrorHeartbeatSettings
    target_admin: ConnectionSettings
    admin_plugins: AdminPlugins = DIRECTLY
    source_admin: ConnectionSettings | None = None
    """Asks for the source's id; None where the connector, which writes to the target only, has no source."""


Configured = ConfiguredSource | ConfiguredCheckpoint | ConfiguredHeartbeat


@dataclass(frozen=True, slots=True)
class FlowWorker:
    """A flow, and the Connect worker on the target that stores its positions."""

    flow: Flow
    worker: WorkerSettings
    worker_client: ConnectionSettings

    def positions_of(self, connector: ConnectorName) -> tuple[ConnectionSettings, str, ConnectorName, Alias]:
        """Say where the positions of a connector are: client, topic, and what their keys begin with."""
        return self.worker_client, self.worker.offset_topic.name, connector, self.flow.source


@dataclass(frozen=True, slots=True)
class ConfiguredFlow(FlowWorker):
    """`source` and `checkpoint` are None for a flow that only emits heartbeats."""

    source: ConfiguredSource | None
    checkpoint: ConfiguredCheckpoint | None
    heartbeat: ConfiguredHeartbeat
    checkpoint_off: str | None = None
    """The setting that turns the checkpoint connector off."""
    is_copied_back: bool = False
    """Whether the opposite flow copies, by the same file."""
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """The config of each connector as it was written, without secrets."""


def configured_flow(config: FlowProperties) -> ConfiguredFlow:
    """Raises ConfigError with key, value and reason for unusable settings."""
    heartbeat = configured_heartbeat(config.heartbeat)
    worker = worker_settings(config.worker)
    source = configured_source(config.source, config.worker, worker)
    if source is not None:
        known = source.settings.state_topics | config.state_topics
        source = replace(source, settings=replace(source.settings, state_topics=known))
    return ConfiguredFlow(
        flow=config.flow,
        worker=worker,
        worker_client=client_layers.worker_client(config.worker, "offsets"),
        source=source,
        checkpoint=configured_checkpoint(config.checkpoint, config.worker),
        heartbeat=heartbeat,
        checkpoint_off=mirror_checkpoint_off(config.checkpoint),
        is_copied_back=config.is_copied_back,
        shown={
            written["name"].strip(): masked(
                written.where(lambda key: not key.endswith(client_layers.SHOWN_ALIAS)).as_written()
            )
            for written in (config.source, config.checkpoint, config.heartbeat)
        },
    )


def with_opposite(flow: ConfiguredFlow, others: Iterable[ConfiguredFlow]) -> ConfiguredFlow:
    """Let a flow know the settings of the opposite one, if that is among the other flows of its file."""
    source, target = flow.flow
    opposite = next((it.source for it in others if it.flow == Flow(target, source)), None)
    if flow.source is None or opposite is None:
        return flow
    settings = replace(flow.source.settings, opposite=opposite.settings)
    return replace(flow, source=replace(flow.source, settings=settings))


def configured_source(
    connector: Properties, worker_properties: Properties, worker: WorkerSettings
) -> ConfiguredSource | None:
    """Return None for a connector that is not enabled. Raises ConfigError for unusable settings."""
    if not mirror_source_enabled(connector):
        return None
    settings = replace(mirror_source_settings(connector), state_topics=worker.state_topics)
    note = REPLICATION_POLICY.note(connector)
    if note is not None:
        _log.info("%s: %s", settings.flow, note)
    config = ConfiguredSource(
        name=ConnectorName(connector["name"].strip()),
        settings=settings,
        source_admin=client_layers.source_admin(connector),
        target_admin=client_layers.target_admin(connector),
        offset_syncs_admin=client_layers.offset_syncs_admin(connector),
        offset_syncs_producer=client_layers.offset_syncs_producer(connector, 0).connection,
        consumer_of=partial(client_layers.source_consumer, connector),
        producer_of=partial(client_layers.target_producer, worker_properties, connector),
        transactions=transaction_settings(worker, worker_properties, connector),
        admin_plugins=admin_plugins(connector, settings.flow),
    )
    return config if settings.preserved_topics is None else _preserving(connector, config)


def _preserving(connector: Properties, config: ConfiguredSource) -> ConfiguredSource:
    """Drop transactions, whose commits take offsets: the log's end is the position (docs/decisions/0006).

    Raises ConfigError for what does not go together with preserved offsets.
    """
    _check_preserving(connector, config)
    if config.transactions is None:
        return config
    _log.info(
        "%s: copying without transactions, since offsets.preserve is set and their commit markers would take "
        "offsets; each record is still copied exactly once",
        config.settings.flow,
    )
    return replace(config, transactions=None)


def _check_preserving(connector: Properties, config: ConfiguredSource) -> None:
    reason: str | None = None
    if config.transactions is not None and not config.settings.preserves_all:
        reason = (
            "is for all topics or none with exactly.once.source.support=enabled, since topics whose offsets "
            f"are preserved are copied exactly once without transactions: remove {PRESERVED_TOPICS}"
        )
    elif not config.producer_of(0).idempotent:
        reason = "needs sequences: not with enable.idempotence=false, acks other than all, or retries=0"
    elif config.consumer_of(0).offset_reset is not OffsetReset.EARLIEST:
        reason = "begins where the source begins: needs auto.offset.reset=earliest"
    elif config.settings.copying.provenance_header:
        reason = "records are the source's: not with provenance.header=true"
    if reason is not None:
        raise connector.error("offsets.preserve", reason)


def configured_checkpoint(
    connector: Properties, worker_properties: Properties
) -> ConfiguredCheckpoint | None:
    """Return None for a connector that has nothing to do. Raises ConfigError for unusable settings."""
    settings = mirror_checkpoint_settings(connector)
    if settings is None:
        return None
    return ConfiguredCheckpoint(
        name=ConnectorName(connector["name"].strip()),
        settings=settings,
        source_admin=client_layers.source_admin(connector, "checkpoint-source-admin"),
        target_admin=client_layers.target_admin(connector, "checkpoint-target-admin"),
        offset_syncs_consumer=client_layers.offset_syncs_consumer(connector),
        checkpoints_consumer=client_layers.checkpoints_consumer(connector),
        producer=client_layers.target_producer(worker_properties, connector, 0).connection,
        records_consumer=client_layers.source_consumer(connector, 0),
        admin_plugins=admin_plugins(connector, settings.flow),
    )


def configured_heartbeat(connector: Properties) -> ConfiguredHeartbeat:
    """Raises ConfigError with key, value and reason for unusable settings."""
    settings = mirror_heartbeat_settings(connector)
    return ConfiguredHeartbeat(
        ConnectorName(connector["name"].strip()),
        settings,
        client_layers.target_admin(connector, "heartbeats-target-admin"),
        admin_plugins(connector, settings.flow),
        _source_of_heartbeats(connector),
    )


def _source_of_heartbeats(connector: Properties) -> ConnectionSettings | None:
    """Java's connector reads none of these settings, so that bad ones are no error."""
    with suppress(ConfigError):
        return client_layers.source_admin(connector, "heartbeats-source-admin")
    return None


class MirroringFlow(NamedTuple):
    """A flow that mirrors topics, by this connector."""

    settings: ConfiguredFlow
    connector: ConfiguredSource

    @property
    def name(self) -> str:
        return str(self.settings.flow)
