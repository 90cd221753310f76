"""Serves `/connector-plugins`: lists plugins and their options, and validates configurations."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.forwarding import HerderCalls
from sparkmirror.connect.rest.requests import config_changes, flag, read_body
from sparkmirror.connect.rest.responses import json_response
from sparkmirror.connect.validation import plugin_config_keys, plugins


class PluginsResource:
    def __init__(self, herder: Herder, calls: HerderCalls) -> None:
        self._herder = herder
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
        return json_response(plugins(connectors_only=connectors_only))

    async def _config_keys(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        return json_response(await self._calls.run(lambda: plugin_config_keys(plugin)))

    async def _validate(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        body = await read_body(request)
        config = await self._calls.run(lambda: config_changes(body))
        return json_response(await self._calls.run(lambda: self._herder.validate(plugin, config)))
