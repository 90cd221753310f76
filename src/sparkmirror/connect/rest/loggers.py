"""`/admin/loggers`: log levels of this worker, or of all (KIP-495, KIP-976)."""

import logging
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.routing import Route

from sparkmirror.connect.log_levels import LoggerLevel, LogLevels
from sparkmirror.connect.rest import objects
from sparkmirror.connect.rest.answers import Answer, empty_answer, json_answer
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.rest.errors import bad_request
from sparkmirror.connect.rest.herder import Herder
from sparkmirror.connect.rest.herder_calls import HerderCalls
from sparkmirror.connect.rest.json_bodies import config_changes, read_body
from sparkmirror.connect.rest.paths import first, parameter
from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.log_levels import is_level

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

    async def _list(self, _request: Request) -> Answer:
        return json_answer({name: _json(level) for name, level in self._levels.all().items()})

    async def _level(self, request: Request) -> Answer:
        name = parameter(request, "logger")
        level = self._levels.level(name)
        if level is None:
            raise ConnectError(HTTPStatus.NOT_FOUND, f"Logger {name} not found.")
        return json_answer(_json(level))

    async def _set(self, request: Request) -> Answer:
        name = parameter(request, "logger")
        body = await read_body(request)
        level = config_changes(body).get("level")
        if level is None:
            raise bad_request("Desired 'level' parameter was not specified in request.")
        if not is_level(level):
            raise ConnectError(HTTPStatus.NOT_FOUND, f"invalid log level '{level}'.")
        scope = (first(request, "scope") or _WORKER).lower()
        if scope == _CLUSTER:
            return await self._calls.run_on_leader(request, body, lambda: self._set_everywhere(name, level))
        if scope != _WORKER:
            logger.warning("unknown scope %s of a log level: it is set on this worker only", scope)
        return json_answer(self._levels.set(name, level))

    def _set_everywhere(self, name: str, level: str) -> Answer:
        self._herder.set_log_level(name, level)
        return empty_answer(HTTPStatus.NO_CONTENT)


def _json(level: LoggerLevel) -> objects.Json:
    return {"level": level.level, "last_modified": level.last_modified}
