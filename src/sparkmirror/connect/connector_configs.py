"""Parses connectors' configs as a worker reads them. Runs nothing, so that `plan` need not load Spark."""

from collections.abc import Mapping

from sparkmirror.config.client_layers import worker_client
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.config.worker_settings import WorkerSettings
from sparkmirror.connect.rest_limits import allowed_folders
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Flow
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker, configured_source
from sparkmirror.settings.parsing import mirror_source_enabled


class ConnectorSettings:
    """Parses connectors' configs with the worker's properties and config providers."""

    def __init__(self, worker: Properties, settings: WorkerSettings, environment: Mapping[str, str]) -> None:
        self.worker = worker
        self._settings = settings
        self._client = worker_client(worker, "offsets")
        self._providers = configured_providers(worker, environment)

    def resolved(self, config: ConnectorConfig) -> Properties:
        """Replace the config's placeholders. Raises ConfigError. Its files lie below the worker's folders."""
        written = Properties(config).confined(allowed_folders(self.worker))
        return resolved(written, self._providers)

    def source(self, config: ConnectorConfig) -> tuple[FlowWorker, ConfiguredSource]:
        """Parse a MirrorSourceConnector's config. Raises ConfigError for other classes and bad values."""
        connector = self.resolved(config)
        if connector_kind(connector) != "MirrorSource":
            raise ConfigError(
                "connector.class", connector.get("connector.class"), "is no MirrorSourceConnector"
            )
        if not mirror_source_enabled(connector):
            raise ConfigError("enabled", "false", "lets the connector do nothing")
        source = configured_source(connector, self.worker, self._settings)
        return self.on(source.settings.flow), source

    def on(self, flow: Flow) -> FlowWorker:
        return FlowWorker(flow, self._settings, self._client)


def connector_kind(connector: Properties) -> str:
    """The class name without its package and `Connector`."""
    return connector.get("connector.class", "").rpartition(".")[2].removesuffix("Connector")
