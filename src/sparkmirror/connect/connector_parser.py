"""Parses connectors' configs as a worker reads them. Runs nothing, so that `plan` need not load Spark.

The author of a config is not the worker's owner: classes, files and URLs that the worker's properties don't
allow are refused.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from sparkmirror.config.client_layers import worker_client
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.config.worker_options import ALLOWED_PATHS, ALLOWED_URLS, WORKER
from sparkmirror.config.worker_settings import WorkerSettings
from sparkmirror.connect.validation.classes import PLUGIN_KEYS, module_problem, plugin_modules
from sparkmirror.connect.validation.values import Given
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Flow
from sparkmirror.settings.configured import (
    Configured,
    ConfiguredSource,
    FlowWorker,
    configured_checkpoint,
    configured_heartbeat,
    configured_source,
)
from sparkmirror.transforms.parsing import function_keys

_FILES: Final = (
    "sync.users",
    "ssl.keystore.location",
    "ssl.truststore.location",
    "keyTab",
    "ticketCache",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
)
"""The options, also of login modules, whose value is the path of a file that the worker reads."""
_URLS: Final = ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url")
"""The options whose value is a URL that the worker reads (CVE-2025-27817)."""


class ConnectorParser:
    """Parses connectors' configs with the worker's properties and config providers."""

    def __init__(self, worker: Properties, settings: WorkerSettings, environment: Mapping[str, str]) -> None:
        self._worker = worker
        self._settings = settings
        self._client = worker_client(worker, "offsets")
        self._providers = configured_providers(worker, environment)

    def given(self, config: Mapping[str, str | None]) -> Given:
        """Replace the config's placeholders, for `validate`; its files lie below the worker's folders."""
        folders = _allowed_folders(self._worker)
        return Given(config, self._providers, plugin_modules(self._worker), folders)

    def resolved(self, config: ConnectorConfig) -> Properties:
        """Replace the placeholders of a config that was validated before. Raises ConfigError."""
        written = Properties(config).confined(_allowed_folders(self._worker))
        return resolved(written, self._providers)

    def parsed(self, connector: Properties) -> Configured | None:
        """Return None for a connector that does nothing. Raises ConfigError with key, value and reason."""
        require_allowed(connector, self._worker)
        match _kind(connector):
            case "MirrorSource":
                return configured_source(connector, self._worker, self._settings)
            case "MirrorCheckpoint":
                return configured_checkpoint(connector, self._worker)
            case "MirrorHeartbeat":
                return configured_heartbeat(connector)
            case _:
                raise connector.error("connector.class", "is none of MirrorMaker's connectors")

    def source(self, config: ConnectorConfig) -> tuple[FlowWorker, ConfiguredSource]:
        """Parse a MirrorSourceConnector's config. Raises ConfigError for other classes and bad values."""
        connector = self.resolved(config)
        source = self.parsed(connector)
        if isinstance(source, ConfiguredSource):
            return self.on(source.settings.flow), source
        if _kind(connector) == "MirrorSource":
            raise ConfigError("enabled", "false", "lets the connector do nothing")
        raise ConfigError("connector.class", connector["connector.class"], "is no MirrorSourceConnector")

    def on(self, flow: Flow) -> FlowWorker:
        return FlowWorker(flow, self._settings, self._client)


def _kind(connector: Properties) -> str:
    """The class name without its package and `Connector`."""
    return connector.get("connector.class", "").rpartition(".")[2].removesuffix("Connector")


def require_allowed(connector: Properties, worker: Properties) -> None:
    """Raise ConfigError for a module or file that the worker's properties don't allow; import nothing."""
    modules = plugin_modules(worker)
    for key in (*(PLUGIN_KEYS & connector.keys()), *function_keys(connector)):
        problem = module_problem(connector[key], modules)
        if problem is not None:
            raise connector.error(key, problem)
    for key in sorted(connector.keys()):
        if key.endswith(_URLS) and connector[key].strip() not in _items(worker, ALLOWED_URLS):
            raise connector.error(key, f"is none of the worker's {ALLOWED_URLS}")
        for path in _files_of(key, connector[key]):
            if path and not _is_below(path, _allowed_folders(worker)):
                raise connector.error(key, f"is not below a folder of the worker's {ALLOWED_PATHS}")


def _allowed_folders(worker: Properties) -> tuple[str, ...]:
    """The folders below which files of REST configs lie. They are looked at again when a file is opened."""
    return tuple(filter(None, _items(worker, ALLOWED_PATHS)))


def _files_of(key: str, value: str) -> Iterator[str]:
    """The files that the value of an option names; a login module has stores for its token endpoint."""
    if key.endswith(_FILES):
        yield value.strip()
    elif key.endswith("sasl.jaas.config"):
        with suppress(ValueError):  # what can't be parsed is refused as a login
            yield from (text for name, text in parse_jaas(value).options.items() if name.endswith(_FILES))


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    if "\0" in path:
        return False
    real = os.path.realpath(path)
    roots = [os.path.realpath(folder) for folder in folders]
    return any(os.path.commonpath((real, root)) == root for root in roots)


def _items(worker: Properties, key: str) -> tuple[str, ...]:
    value = WORKER[key].parse(worker.get(key, ""))
    assert isinstance(value, tuple)
    return value
