"""Creates the runs of a Connect worker's connectors from their configs."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from sparkmirror.config.properties import Properties
from sparkmirror.connect.connector_parser import ConnectorParser
from sparkmirror.connect.validation.values import Given
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.mirror.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, IdleRun, SourceRun
from sparkmirror.mirror.shared_targets import SharedTargets
from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.flow_planning import plan_source
from sparkmirror.settings.configured import Configured, ConfiguredCheckpoint, ConfiguredSource
from sparkmirror.spark.session import Session

Prepared = Callable[[], ConnectorRun]
"""Creates the run of a connector whose config has been parsed."""


class ConnectorFactory:
    """Creates the runs of one worker's connectors."""

    def __init__(
        self,
        parser: ConnectorParser,
        session: "Callable[[], Future[Session]]",
        slots_of: Callable[[int, Session], int],
    ) -> None:
        """`slots_of` returns how many of the session's slots a connector with that many tasks may use."""
        self._parser = parser
        self._session = session
        self._slots_of = slots_of
        self._shared = SharedTargets()

    def given(self, config: Mapping[str, str | None]) -> Given:
        """The config with its placeholders replaced, for validation and `prepared`."""
        return self._parser.given(config)

    def prepared(self, connector: Properties) -> Prepared:
        """Parse a connector's resolved properties. Raises ConfigError with key, value and reason."""
        return partial(self._run, self._parser.parsed(connector))

    def prepared_again(self, config: ConnectorConfig) -> Prepared:
        """Parse a config of the config topic, whose placeholders may have other values than before."""
        return self.prepared(self._parser.resolved(config))

    def plan(self, config: ConnectorConfig) -> FlowPlan:
        """Plan a MirrorSourceConnector. Raises ConfigError for other classes, and KafkaError."""
        return plan_source(*self._parser.source(config))

    def _run(self, connector: Configured | None) -> ConnectorRun:
        if connector is None:
            return IdleRun()
        on = self._parser.on(connector.settings.flow)
        if isinstance(connector, ConfiguredSource):
            tasks_max = connector.settings.tasks_max
            slots_of = partial(self._slots_of, tasks_max)
            return SourceRun(on, connector, self._session(), slots_of, shared=self._shared)
        if isinstance(connector, ConfiguredCheckpoint):
            return CheckpointRun(on, connector)
        return HeartbeatRun(on, connector)
