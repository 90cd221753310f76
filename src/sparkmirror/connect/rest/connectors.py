"""Serves `/connectors`: creates, changes and deletes connectors; shows their states, tasks and offsets."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparkmirror.config.masking import masked
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.rest import responses
from sparkmirror.connect.rest.authentication import Role, login_of
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.forwarding import HerderCalls
from sparkmirror.connect.rest.requests import (
    config_changes,
    connector_config,
    create_request,
    flag,
    offsets_to_alter,
    read_body,
    requested,
    require_same_name,
)
from sparkmirror.connect.rest.responses import (
    empty_response,
    encoded_response,
    http_error,
    json_bytes,
    json_response,
)
from sparkmirror.connect.rest.rest_settings import TopicTracking
from sparkmirror.domain.connect import ConnectError, ConnectorConfig, ConnectorInfo, TargetState

_VERBS: Final = {TargetState.PAUSED: "pause", TargetState.RUNNING: "resume", TargetState.STOPPED: "stop"}
_ALTERED: Final = "The offsets for this connector have been altered successfully"
_RESET: Final = "The offsets for this connector have been reset successfully"
_TRACKING_OFF: Final = "Topic tracking is disabled."
_HOLDS_RECORDS: Final = "The result of a comparison holds parts of records: administrators only"
_RESET_OFF: Final = "Topic tracking reset is disabled."
_PATH_SAFE: Final = "!$&'()*+,=:@"
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


class ConnectorsResource:
    def __init__(self, herder: Herder, calls: HerderCalls, tracking: TopicTracking) -> None:
        self._herder = herder
        self._calls = calls
        self._tracking = tracking

    def routes(self) -> list[Route]:
        one = "/connectors/{connector}"
        return [  # the first match is taken; most requests are for statuses
            Route(one + "/status", Endpoint({"GET": self._status})),
            Route("/connectors", Endpoint({"GET": self._list, "POST": self._create})),
            Route(one, Endpoint({"GET": self._info, "DELETE": self._delete})),
            Route(one + "/config", Endpoint({"GET": self._config, "PUT": self._put, "PATCH": self._patch})),
            Route(one + "/restart", Endpoint({"POST": self._restart})),
            Route(one + "/pause", Endpoint({"PUT": self._pause})),
            Route(one + "/resume", Endpoint({"PUT": self._resume})),
            Route(one + "/stop", Endpoint({"PUT": self._stop})),
            Route(one + "/tasks", Endpoint({"GET": self._tasks})),
            Route(one + "/tasks/{task}/status", Endpoint({"GET": self._task_status})),
            Route(one + "/tasks/{task}/restart", Endpoint({"POST": self._restart_task})),
            Route(one + "/topics", Endpoint({"GET": self._topics})),
            Route(one + "/topics/reset", Endpoint({"PUT": self._reset_topics})),
            Route(
                one + "/offsets",
                Endpoint({"GET": self._offsets, "PATCH": self._alter_offsets, "DELETE": self._reset_offsets}),
            ),
            Route(one + "/plan", Endpoint({"GET": self._plan})),
            Route(one + "/verify", Endpoint({"GET": self._verification, "POST": self._verify})),
        ]

    async def _list(self, request: Request) -> Response:
        names = self._herder.connectors()
        if "expand" not in request.query_params:
            return json_response(list(names))
        expansions = list(dict.fromkeys(request.query_params.getlist("expand")))
        return await self._calls.run(lambda: self._all(request, names, expansions))

    def _all(self, request: Request, names: Sequence[str], expansions: list[str]) -> Response:
        """Encode each connector by itself: configs may be large, and other threads wait for the encoder."""
        encoded = []
        for name in names:
            try:
                expanded = self._expanded(request, name, expansions)
            except ConnectError as error:
                # It was removed, or has no status yet.
                if error.status is not HTTPStatus.NOT_FOUND:
                    raise
            else:
                encoded.append(json_bytes(name) + b":" + json_bytes(expanded))
        return encoded_response(b"{" + b",".join(encoded) + b"}")

    def _expanded(self, request: Request, name: str, expansions: list[str]) -> responses.Json:
        known = {"status": self._state_json, "info": self._info_json}
        return {expansion: known[expansion](request, name) for expansion in expansions if expansion in known}

    def _info_json(self, request: Request, name: str) -> responses.Json:
        info = self._herder.info(name)
        return responses.connector_info(replace(info, config=_visible(request, info.config)))

    def _state_json(self, _request: Request, name: str) -> responses.Json:
        status = self._herder.status(name)
        try:
            kind = responses.connector_type(self._herder.info(name).config)
        except ConnectError:
            kind = responses.connector_type({})
        return responses.connector_state(status, kind)

    async def _create(self, request: Request) -> Response:
        body = await read_body(request)
        new = await self._calls.run(lambda: create_request(body))

        def create() -> Response:
            info = self._herder.create(new.name, new.config, new.initial_state)
            self._herder.note(new.name, requested("creation", request))
            return _created(request, info)

        return await self._calls.run_on_leader(request, body, create)

    async def _info(self, request: Request) -> Response:
        return json_response(self._info_json(request, request.path_params["connector"]))

    async def _config(self, request: Request) -> Response:
        config = self._herder.info(request.path_params["connector"]).config
        return json_response(dict(_visible(request, config)))

    async def _put(self, request: Request) -> Response:
        name = request.path_params["connector"]
        body = await read_body(request)
        config = await self._calls.run(lambda: connector_config(name, body))

        def put() -> Response:
            is_new, info = self._herder.put(name, config)
            self._herder.note(name, requested("creation" if is_new else "change of its config", request))
            return _created(request, info) if is_new else json_response(responses.connector_info(info))

        return await self._calls.run_on_leader(request, body, put)

    async def _patch(self, request: Request) -> Response:
        name = request.path_params["connector"]
        body = await read_body(request)
        changes = await self._calls.run(lambda: config_changes(body))
        require_same_name(name, changes)

        def patch() -> Response:
            info = self._herder.patch(name, changes)
            self._herder.note(name, requested("change of its config", request))
            return json_response(responses.connector_info(info))

        return await self._calls.run_on_leader(request, body, patch)

    async def _delete(self, request: Request) -> Response:
        name = request.path_params["connector"]

        def delete() -> None:
            self._herder.note(name, requested("deletion", request))
            self._herder.delete(name)

        return await self._done(request, HTTPStatus.NO_CONTENT, delete)

    async def _status(self, request: Request) -> Response:
        return json_response(self._state_json(request, request.path_params["connector"]))

    async def _restart(self, request: Request) -> Response:
        name = request.path_params["connector"]
        include_tasks = flag(request, "includeTasks", default=False)
        only_failed = flag(request, "onlyFailed", default=False)

        def restart() -> Response:
            self._herder.note(name, requested("restart", request))
            status = self._herder.restart(name, include_tasks=include_tasks, only_failed=only_failed)
            if not include_tasks and not only_failed:
                return empty_response(HTTPStatus.NO_CONTENT)
            kind = responses.connector_type(self._herder.info(name).config)
            return json_response(responses.connector_state(status, kind), HTTPStatus.ACCEPTED)

        return await self._calls.run_on_leader(request, b"", restart)

    async def _pause(self, request: Request) -> Response:
        return await self._change_state(request, TargetState.PAUSED, HTTPStatus.ACCEPTED)

    async def _resume(self, request: Request) -> Response:
        return await self._change_state(request, TargetState.RUNNING, HTTPStatus.ACCEPTED)

    async def _stop(self, request: Request) -> Response:
        return await self._change_state(request, TargetState.STOPPED, HTTPStatus.NO_CONTENT)

    async def _change_state(self, request: Request, state: TargetState, status: HTTPStatus) -> Response:
        name = request.path_params["connector"]

        def change() -> None:
            # Before it is done: a connector that has stopped has no events.
            self._herder.note(name, requested(_VERBS[state], request))
            self._herder.change_state(name, state)

        return await self._done(request, status, change)

    async def _tasks(self, request: Request) -> Response:
        name = request.path_params["connector"]
        return await self._calls.run(lambda: self._all_tasks(request, name))

    def _all_tasks(self, request: Request, name: str) -> Response:
        """Encode each task by itself, since it has the whole config."""
        configs = [_visible(request, config) for config in self._herder.task_configs(name)]
        encoded = map(json_bytes, responses.task_infos(name, configs))
        return encoded_response(b"[" + b",".join(encoded) + b"]")

    async def _task_status(self, request: Request) -> Response:
        name, task = request.path_params["connector"], _task(request)
        return json_response(responses.task_state(task, self._herder.task_status(name, task)))

    async def _restart_task(self, request: Request) -> Response:
        name, task = request.path_params["connector"], _task(request)
        return await self._done(request, HTTPStatus.NO_CONTENT, lambda: self._herder.restart_task(name, task))

    async def _topics(self, request: Request) -> Response:
        self._require_tracking()
        name = request.path_params["connector"]
        return json_response(responses.active_topics(name, self._herder.active_topics(name)))

    async def _reset_topics(self, request: Request) -> Response:
        self._require_tracking()
        if not self._tracking.reset_allowed:
            raise ConnectError(HTTPStatus.FORBIDDEN, _RESET_OFF)
        name = request.path_params["connector"]
        return await self._done(request, HTTPStatus.ACCEPTED, lambda: self._herder.reset_active_topics(name))

    def _require_tracking(self) -> None:
        if not self._tracking.enabled:
            raise ConnectError(HTTPStatus.FORBIDDEN, _TRACKING_OFF)

    async def _offsets(self, request: Request) -> Response:
        name = request.path_params["connector"]
        return json_response(
            responses.connector_offsets(await self._calls.run(lambda: self._herder.offsets(name)))
        )

    async def _alter_offsets(self, request: Request) -> Response:
        name = request.path_params["connector"]
        body = await read_body(request)
        offsets = await self._calls.run(lambda: offsets_to_alter(body))

        def alter() -> Response:
            self._herder.alter_offsets(name, offsets)
            return json_response(responses.message(_ALTERED))

        return await self._calls.run_on_leader(request, body, alter)

    async def _reset_offsets(self, request: Request) -> Response:
        name = request.path_params["connector"]

        def reset() -> Response:
            self._herder.reset_offsets(name)
            return json_response(responses.message(_RESET))

        return await self._calls.run_on_leader(request, b"", reset)

    async def _plan(self, request: Request) -> Response:
        """A request of sparkmirror's own, which Connect does not have."""
        name = request.path_params["connector"]
        return await self._calls.run_on_leader(request, b"", lambda: json_response(self._herder.plan(name)))

    async def _verify(self, request: Request) -> Response:
        """Begin a comparison, which Connect has not; `_verification` returns its progress and result."""
        name = request.path_params["connector"]

        def verify() -> None:
            self._herder.note(name, requested("verify", request))
            self._herder.verify(name)

        return await self._done(request, HTTPStatus.ACCEPTED, verify)

    async def _verification(self, request: Request) -> Response:
        name = request.path_params["connector"]
        if login_of(request.scope).role is Role.VIEWER:
            raise ConnectError(HTTPStatus.FORBIDDEN, _HOLDS_RECORDS)

        def read() -> Response:
            return json_response(responses.verification(self._herder.verification(name)))

        return await self._calls.run_on_leader(request, b"", read)

    async def _done(self, request: Request, status: HTTPStatus, action: Callable[[], None]) -> Response:
        def act() -> Response:
            action()
            return empty_response(status)

        return await self._calls.run_on_leader(request, b"", act)


def _visible(request: Request, config: ConnectorConfig) -> ConnectorConfig:
    """The config as the request's user may see it."""
    return masked(config) if login_of(request.scope).role is Role.VIEWER else config


def _created(request: Request, info: ConnectorInfo) -> Response:
    response = json_response(responses.connector_info(info), HTTPStatus.CREATED)
    response.headers["Location"] = f"{request.base_url}connectors/{quote(info.name, safe=_PATH_SAFE)}"
    return response


def _task(request: Request) -> int:
    """The task's number. Raises ConnectError (404) for anything else."""
    text = request.path_params["task"]
    if not _NUMBER.fullmatch(text):
        raise http_error(HTTPStatus.NOT_FOUND)
    return int(text)
