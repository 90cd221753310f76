"""Creates the runs of a Connect worker's connectors from their configs."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from sparkmirror.config.client_layers import worker_client
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.config.worker_settings import WorkerSettings
from sparkmirror.connect.rest_limits import require_allowed
from sparkmirror.connectors.connector_settings import mirror_source_enabled
from sparkmirror.connectors.flow_settings import (
    FlowWorker,
    SourceConfig,
    checkpoint_config,
    heartbeat_config,
    source_config,
)
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Flow
from sparkmirror.mirror.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, IdleRun, SourceRun
from sparkmirror.setup.plan.flow_plan import FlowPlan
from sparkmirror.setup.plan.flow_planning import plan_source
from sparkmirror.spark.session import Session


class ConnectorSettings:
    """Parses connectors' configs with the worker's properties and config providers."""

    def __init__(self, worker: Properties, settings: WorkerSettings, environment: Mapping[str, str]) -> None:
        self.worker = worker
        self._settings = settings
        self._client = worker_client(worker, "offsets")
        self._providers = configured_providers(worker, environment)

    def resolved(self, config: ConnectorConfig) -> Properties:
        """Replace the config's placeholders. Raises ConfigError."""
        return resolved(Properties(config), self._providers)

    def source(self, config: ConnectorConfig) -> tuple[FlowWorker, SourceConfig]:
        """Parse a MirrorSourceConnector's config. Raises ConfigError for other classes and bad values."""
        connector = self.resolved(config)
        if connector_kind(connector) != "MirrorSource":
            raise ConfigError(
                "connector.class", connector.get("connector.class"), "is no MirrorSourceConnector"
            )
        if not mirror_source_enabled(connector):
            raise ConfigError("enabled", "false", "lets the connector do nothing")
        source = source_config(connector, self.worker, self._settings)
        return self.on(source.settings.flow), source

    def on(self, flow: Flow) -> FlowWorker:
        return FlowWorker(flow, self._settings, self._client)


def connector_kind(connector: Properties) -> str:
    """The class name without its package and `Connector`."""
    return connector.get("connector.class", "").rpartition(".")[2].removesuffix("Connector")


class ConnectorFactory:
    """Creates the runs of one worker's connectors."""

    def __init__(
        self,
        worker: Properties,
        settings: WorkerSettings,
        environment: Mapping[str, str],
        session: "Callable[[], Future[Session]]",
        slots_of: Callable[[int, Session], int],
    ) -> None:
        """`slots_of` returns how many of the session's slots a connector with that many tasks may use."""
        self._read = ConnectorSettings(worker, settings, environment)
        self._session = session
        self._slots_of = slots_of

    def prepared(self, config: ConnectorConfig) -> Callable[[], ConnectorRun]:
        """Return a call that creates the run. Raises ConfigError with key, value and reason."""
        connector = self._allowed(config)
        match connector_kind(connector):
            case "MirrorSource":
                return self._source(connector, config)
            case "MirrorCheckpoint":
                checkpoint = checkpoint_config(connector, self._read.worker)
                if checkpoint is None:
                    return IdleRun
                return partial(CheckpointRun, self._read.on(checkpoint.settings.flow), checkpoint)
            case "MirrorHeartbeat":
                heartbeat = heartbeat_config(connector)
                return partial(HeartbeatRun, self._read.on(heartbeat.settings.flow), heartbeat)
            case _:
                raise connector.error("connector.class", "is none of MirrorMaker's connectors")

    def plan(self, config: ConnectorConfig) -> FlowPlan:
        """Plan a MirrorSourceConnector. Raises ConfigError for other classes, and KafkaError."""
        self._allowed(config)
        return plan_source(*self._read.source(config))

    def _allowed(self, config: ConnectorConfig) -> Properties:
        connector = self._read.resolved(config)
        require_allowed(connector, self._read.worker)
        return connector

    def _source(self, connector: Properties, config: ConnectorConfig) -> Callable[[], ConnectorRun]:
        if not mirror_source_enabled(connector):
            return IdleRun
        on, source = self._read.source(config)
        tasks_max = source.settings.tasks_max
        return lambda: SourceRun(
            on, source, self._session(), lambda session: self._slots_of(tasks_max, session)
        )
