"""`/connector-plugins`: what can be configured here, and what a configuration is worth."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.routing import Route

from sparkmirror.connect.rest.answers import Answer, json_answer
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.rest.herder_calls import HerderCalls
from sparkmirror.connect.rest.json_bodies import config_changes, read_body
from sparkmirror.connect.rest.paths import flag, parameter

JsonObject = Mapping[str, object]


class Plugins(Protocol):
    """Describes plugins, in JSON as Connect has it. Raises ConnectError for those that aren't there."""

    def plugins(self, *, connectors_only: bool) -> Sequence[JsonObject]:
        """PluginInfo of each."""
        ...

    def config_keys(self, plugin: str) -> Sequence[JsonObject]:
        """ConfigKeyInfo of each of its options."""
        ...

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> JsonObject:
        """ConfigInfos. May ask clusters, so it blocks."""
        ...


class PluginsResource:
    def __init__(self, plugins: Plugins, calls: HerderCalls) -> None:
        self._plugins = plugins
        self._calls = calls

    def routes(self) -> list[Route]:
        at = "/connector-plugins"
        return [
            Route(at, Endpoint({"GET": self._list})),
            Route(at + "/{plugin}/config", Endpoint({"GET": self._config_keys})),
            Route(at + "/{plugin}/config/validate", Endpoint({"PUT": self._validate})),
        ]

    async def _list(self, request: Request) -> Answer:
        connectors_only = flag(request, "connectorsOnly", default=True)
        return json_answer(self._plugins.plugins(connectors_only=connectors_only))

    async def _config_keys(self, request: Request) -> Answer:
        plugin = parameter(request, "plugin")
        return json_answer(await self._calls.run(lambda: self._plugins.config_keys(plugin)))

    async def _validate(self, request: Request) -> Answer:
        plugin = parameter(request, "plugin")
        config = config_changes(await read_body(request))
        return json_answer(await self._calls.run(lambda: self._plugins.validate(plugin, config)))
