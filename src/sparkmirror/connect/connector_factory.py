"""Creates the runs of a Connect worker's connectors from their configs."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_settings import WorkerSettings
from sparkmirror.connect.connector_configs import ConnectorSettings, connector_kind
from sparkmirror.connect.rest_limits import require_allowed
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.mirror.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, IdleRun, SourceRun
from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.flow_planning import plan_source
from sparkmirror.settings.configured import configured_checkpoint, configured_heartbeat
from sparkmirror.settings.parsing import mirror_source_enabled
from sparkmirror.spark.session import Session


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
                checkpoint = configured_checkpoint(connector, self._read.worker)
                if checkpoint is None:
                    return IdleRun
                return partial(CheckpointRun, self._read.on(checkpoint.settings.flow), checkpoint)
            case "MirrorHeartbeat":
                heartbeat = configured_heartbeat(connector)
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
