"""Serves `/connector-plugins`: lists plugins and their options, and validates configurations."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.forwarding import HerderCalls
from sparkmirror.connect.rest.requests import config_changes, flag, read_body
from sparkmirror.connect.rest.responses import json_response

JsonObject = Mapping[str, object]


class Plugins(Protocol):
    """Describes plugins in Connect's JSON. Raises ConnectError for unknown ones."""

    def plugins(self, *, connectors_only: bool) -> Sequence[JsonObject]:
        """PluginInfo of each."""
        ...

    def config_keys(self, plugin: str) -> Sequence[JsonObject]:
        """ConfigKeyInfo of each of its options."""
        ...

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> JsonObject:
        """ConfigInfos. May send requests to clusters, so it blocks."""
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

    async def _list(self, request: Request) -> Response:
        connectors_only = flag(request, "connectorsOnly", default=True)
        return json_response(self._plugins.plugins(connectors_only=connectors_only))

    async def _config_keys(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        return json_response(await self._calls.run(lambda: self._plugins.config_keys(plugin)))

    async def _validate(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        body = await read_body(request)
        config = await self._calls.run(lambda: config_changes(body))
        return json_response(await self._calls.run(lambda: self._plugins.validate(plugin, config)))
