"""From a connector's config on a Connect worker to what runs it."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from sparkmirror.config.clients import worker_client
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.config.worker import WorkerSettings
from sparkmirror.connectors.settings import mirror_source_enabled
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Flow
from sparkmirror.engine.session import Session
from sparkmirror.runtime.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, IdleRun, SourceRun
from sparkmirror.runtime.flow_settings import (
    FlowWorker,
    checkpoint_connector,
    heartbeat_connector,
    source_connector,
)


class ConnectorFactory:
    """Makes the runs of one worker's connectors."""

    def __init__(
        self,
        worker: Properties,
        settings: WorkerSettings,
        environment: Mapping[str, str],
        session: "Callable[[], Future[Session]]",
        slots_of: Callable[[int, Session], int],
    ) -> None:
        """`slots_of` says how many of the session's slots a connector of so many tasks may take."""
        self._worker = worker
        self._settings = settings
        self._client = worker_client(worker, "offsets")
        self._providers = configured_providers(worker, environment)
        self._session = session
        self._slots_of = slots_of

    def prepared(self, config: ConnectorConfig) -> Callable[[], ConnectorRun]:
        """What makes its run. Raises ConfigError with key, value and reason for whatever can't be used."""
        connector = resolved(Properties(config), self._providers)
        match connector.get("connector.class", "").rpartition(".")[2].removesuffix("Connector"):
            case "MirrorSource":
                return self._source(connector)
            case "MirrorCheckpoint":
                checkpoint = checkpoint_connector(connector, self._worker)
                if checkpoint is None:
                    return IdleRun
                return partial(CheckpointRun, self._on(checkpoint.settings.flow), checkpoint)
            case "MirrorHeartbeat":
                heartbeat = heartbeat_connector(connector)
                return partial(HeartbeatRun, self._on(heartbeat.settings.flow), heartbeat)
            case other:
                raise ConfigError("connector.class", other, "is none of MirrorMaker's connectors")

    def _source(self, connector: Properties) -> Callable[[], ConnectorRun]:
        if not mirror_source_enabled(connector):
            return IdleRun
        source = source_connector(connector, self._worker, self._settings)
        on, tasks_max = self._on(source.settings.flow), source.settings.tasks_max
        return lambda: SourceRun(
            on, source, self._session(), lambda session: self._slots_of(tasks_max, session)
        )

    def _on(self, flow: Flow) -> FlowWorker:
        return FlowWorker(flow, self._settings, self._client)
