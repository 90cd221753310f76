"""Runs the actions of the pages' forms by the REST API's own calls and with its rights."""

import json
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.rest.authentication import Role, login_of
from sparkmirror.connect.rest.forwarding import HerderCalls
from sparkmirror.connect.rest.requests import requested
from sparkmirror.connect.rest.responses import empty_response
from sparkmirror.domain.connect import ConnectError, TargetState


class _Call(NamedTuple):
    """A request of the REST API, and what it does."""

    method: str
    path: str
    do: Callable[[Herder, str], object]
    query: bytes = b""


def _set(state: TargetState) -> Callable[[Herder, str], object]:
    return lambda herder, name: herder.change_state(name, state)


def _restart(herder: Herder, name: str) -> None:
    herder.restart(name, include_tasks=True, only_failed=False)


_CALLS: Final = {
    "pause": _Call("PUT", "pause", _set(TargetState.PAUSED)),
    "resume": _Call("PUT", "resume", _set(TargetState.RUNNING)),
    "stop": _Call("PUT", "stop", _set(TargetState.STOPPED)),
    "restart": _Call("POST", "restart", _restart, b"includeTasks=true"),
    "verify": _Call("POST", "verify", lambda herder, name: herder.verify(name)),
}


class PageActions:
    """`is_on`: the API authenticates, or only this machine reaches it and its owner wants actions."""

    def __init__(self, herder: Herder, calls: HerderCalls, *, is_on: bool) -> None:
        self._herder = herder
        self._calls = calls
        self._is_on = is_on

    def are_allowed(self, request: Request) -> bool:
        return self._is_on and login_of(request.scope).role is Role.ADMIN

    async def act(self, request: Request, action: str, connector: str) -> None:
        call = _CALLS[action]
        path = f"/connectors/{connector}/{call.path}"
        sent = {**request.scope, "method": call.method, "path": path, "query_string": call.query}
        done = partial(self._done, call, connector, requested(action, request))
        response = await self._calls.run_on_leader(Request(sent), b"", done)
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise ConnectError(HTTPStatus(response.status_code), _message(response))

    def _done(self, call: _Call, connector: str, note: str) -> Response:
        # Before it is done: a connector that has stopped has no events.
        self._herder.note(connector, note)
        call.do(self._herder, connector)
        return empty_response(HTTPStatus.NO_CONTENT)


def _message(response: Response) -> str:
    try:
        return str(json.loads(bytes(response.body))["message"])
    except (ValueError, KeyError, TypeError):
        return f"The leader refused it with {response.status_code}"
