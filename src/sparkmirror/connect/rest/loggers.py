"""Serves `/admin/loggers`: shows and sets log levels of this worker, or of all (KIP-495, KIP-976)."""

import logging
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.logger_levels import LoggerLevel, LogLevels, is_level
from sparkmirror.connect.rest import responses
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.forwarding import HerderCalls
from sparkmirror.connect.rest.requests import config_changes, read_body
from sparkmirror.connect.rest.responses import bad_request, empty_response, json_response
from sparkmirror.domain.connect import ConnectError

logger = logging.getLogger(__name__)

_CLUSTER: Final = "cluster"
_WORKER: Final = "worker"


class LoggersResource:
    def __init__(self, herder: Herder, levels: LogLevels, calls: HerderCalls) -> None:
        self._herder = herder
        self._levels = levels
        self._calls = calls

    def routes(self) -> list[Route]:
        return [
            Route("/admin/loggers", Endpoint({"GET": self._list})),
            Route("/admin/loggers/{logger}", Endpoint({"GET": self._level, "PUT": self._set})),
        ]

    async def _list(self, _request: Request) -> Response:
        return json_response({name: _json(level) for name, level in self._levels.all().items()})

    async def _level(self, request: Request) -> Response:
        name = request.path_params["logger"]
        level = self._levels.level(name)
        if level is None:
            raise ConnectError(HTTPStatus.NOT_FOUND, f"Logger {name} not found.")
        return json_response(_json(level))

    async def _set(self, request: Request) -> Response:
        name = request.path_params["logger"]
        body = await read_body(request)
        level = (await self._calls.run(lambda: config_changes(body))).get("level")
        if level is None:
            raise bad_request("Desired 'level' parameter was not specified in request.")
        if not is_level(level):
            raise ConnectError(HTTPStatus.NOT_FOUND, f"invalid log level '{level}'.")
        self._levels.require_place(name)
        scope = (request.query_params.get("scope") or _WORKER).lower()
        if scope == _CLUSTER:
            return await self._calls.run_on_leader(
                request, body, lambda: self._set_on_all_workers(name, level)
            )
        if scope != _WORKER:
            logger.warning(
                "log level of %s: unknown scope %s; the level is set on this worker only", name, scope
            )
        return json_response(self._levels.set(name, level))

    def _set_on_all_workers(self, name: str, level: str) -> Response:
        self._herder.set_log_level(name, level)
        return empty_response(HTTPStatus.NO_CONTENT)


def _json(level: LoggerLevel) -> responses.Json:
    return {"level": level.level, "last_modified": level.last_modified}
