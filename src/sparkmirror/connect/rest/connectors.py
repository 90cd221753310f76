"""`/connectors`: what runs, and what is to run."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.routing import Route

from sparkmirror.connect.rest import objects
from sparkmirror.connect.rest.answers import Answer, empty_answer, json_answer
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.rest.errors import http_error
from sparkmirror.connect.rest.herder import Herder
from sparkmirror.connect.rest.herder_calls import HerderCalls
from sparkmirror.connect.rest.internal import InternalRequests
from sparkmirror.connect.rest.json_bodies import (
    config_changes,
    connector_config,
    create_request,
    offsets_to_alter,
    read_body,
    require_same_name,
)
from sparkmirror.connect.rest.paths import encoded, flag, parameter
from sparkmirror.connect.rest.settings import TopicTracking
from sparkmirror.domain.connect import ConnectError, ConnectorInfo, TargetState

_ALTERED: Final = "The offsets for this connector have been altered successfully"
_RESET: Final = "The offsets for this connector have been reset successfully"
_TRACKING_OFF: Final = "Topic tracking is disabled."
_RESET_OFF: Final = "Topic tracking reset is disabled."
_INT_MAX: Final = 2**31 - 1


class ConnectorsResource:
    def __init__(
        self, herder: Herder, calls: HerderCalls, tracking: TopicTracking, internal: InternalRequests
    ) -> None:
        self._herder = herder
        self._calls = calls
        self._tracking = tracking
        self._internal = internal

    def routes(self) -> list[Route]:
        one = "/connectors/{connector}"
        return [  # the first that matches is taken, and polls are for statuses
            Route(one + "/status", Endpoint({"GET": self._status})),
            Route("/connectors", Endpoint({"GET": self._list, "POST": self._create})),
            Route(one, Endpoint({"GET": self._info, "DELETE": self._delete})),
            Route(one + "/config", Endpoint({"GET": self._config, "PUT": self._put, "PATCH": self._patch})),
            Route(one + "/restart", Endpoint({"POST": self._restart})),
            Route(one + "/pause", Endpoint({"PUT": self._pause})),
            Route(one + "/resume", Endpoint({"PUT": self._resume})),
            Route(one + "/stop", Endpoint({"PUT": self._stop})),
            Route(
                one + "/tasks",
                Endpoint({"GET": self._tasks, "POST": self._internal.refuse}, consumes_json=False),
            ),
            Route(one + "/fence", Endpoint({"PUT": self._internal.refuse}, consumes_json=False)),
            Route(one + "/tasks/{task}/status", Endpoint({"GET": self._task_status})),
            Route(one + "/tasks/{task}/restart", Endpoint({"POST": self._restart_task})),
            Route(one + "/topics", Endpoint({"GET": self._topics})),
            Route(one + "/topics/reset", Endpoint({"PUT": self._reset_topics})),
            Route(
                one + "/offsets",
                Endpoint({"GET": self._offsets, "PATCH": self._alter_offsets, "DELETE": self._reset_offsets}),
            ),
        ]

    async def _list(self, request: Request) -> Answer:
        names = self._herder.connectors()
        if "expand" not in request.query_params:
            return json_answer(list(names))
        asked = request.query_params.getlist("expand")
        expanded = {}
        for name in names:
            try:
                expanded[name] = self._expanded(name, asked)
            except ConnectError as error:
                # It was removed, or has no status yet.
                if error.status is not HTTPStatus.NOT_FOUND:
                    raise
        return json_answer(expanded)

    def _expanded(self, name: str, asked: list[str]) -> objects.Json:
        known = {"status": self._state_json, "info": self._info_json}
        return {expansion: known[expansion](name) for expansion in asked if expansion in known}

    def _info_json(self, name: str) -> objects.Json:
        return objects.connector_info(self._herder.info(name))

    def _state_json(self, name: str) -> objects.Json:
        status = self._herder.status(name)
        try:
            kind = objects.connector_type(self._herder.info(name).config)
        except ConnectError:
            kind = objects.connector_type({})
        return objects.connector_state(status, kind)

    async def _create(self, request: Request) -> Answer:
        body = await read_body(request)
        asked = create_request(body)

        def create() -> Answer:
            info = self._herder.create(asked.name, asked.config, asked.initial_state)
            return _created(request, info)

        return await self._calls.run_on_leader(request, body, create)

    async def _info(self, request: Request) -> Answer:
        return json_answer(self._info_json(parameter(request, "connector")))

    async def _config(self, request: Request) -> Answer:
        return json_answer(dict(self._herder.info(parameter(request, "connector")).config))

    async def _put(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        body = await read_body(request)
        config = connector_config(name, body)

        def put() -> Answer:
            is_new, info = self._herder.put(name, config)
            return _created(request, info) if is_new else json_answer(objects.connector_info(info))

        return await self._calls.run_on_leader(request, body, put)

    async def _patch(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        body = await read_body(request)
        changes = config_changes(body)
        require_same_name(name, changes)

        def patch() -> Answer:
            return json_answer(objects.connector_info(self._herder.patch(name, changes)))

        return await self._calls.run_on_leader(request, body, patch)

    async def _delete(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        return await self._done(request, HTTPStatus.NO_CONTENT, lambda: self._herder.delete(name))

    async def _status(self, request: Request) -> Answer:
        return json_answer(self._state_json(parameter(request, "connector")))

    async def _restart(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        include_tasks = flag(request, "includeTasks", default=False)
        only_failed = flag(request, "onlyFailed", default=False)

        def restart() -> Answer:
            status = self._herder.restart(name, include_tasks=include_tasks, only_failed=only_failed)
            if not include_tasks and not only_failed:
                return empty_answer(HTTPStatus.NO_CONTENT)
            kind = objects.connector_type(self._herder.info(name).config)
            return json_answer(objects.connector_state(status, kind), HTTPStatus.ACCEPTED)

        return await self._calls.run_on_leader(request, b"", restart)

    async def _pause(self, request: Request) -> Answer:
        return await self._change_state(request, TargetState.PAUSED, HTTPStatus.ACCEPTED)

    async def _resume(self, request: Request) -> Answer:
        return await self._change_state(request, TargetState.RUNNING, HTTPStatus.ACCEPTED)

    async def _stop(self, request: Request) -> Answer:
        return await self._change_state(request, TargetState.STOPPED, HTTPStatus.NO_CONTENT)

    async def _change_state(self, request: Request, state: TargetState, status: HTTPStatus) -> Answer:
        name = parameter(request, "connector")
        return await self._done(request, status, lambda: self._herder.change_state(name, state))

    async def _tasks(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        return json_answer(objects.task_infos(name, self._herder.task_configs(name)))

    async def _task_status(self, request: Request) -> Answer:
        name, task = parameter(request, "connector"), _task(request)
        return json_answer(objects.task_state(task, self._herder.task_status(name, task)))

    async def _restart_task(self, request: Request) -> Answer:
        name, task = parameter(request, "connector"), _task(request)
        return await self._done(request, HTTPStatus.NO_CONTENT, lambda: self._herder.restart_task(name, task))

    async def _topics(self, request: Request) -> Answer:
        self._require_tracking()
        name = parameter(request, "connector")
        return json_answer(objects.active_topics(name, self._herder.active_topics(name)))

    async def _reset_topics(self, request: Request) -> Answer:
        self._require_tracking()
        if not self._tracking.reset_allowed:
            raise ConnectError(HTTPStatus.FORBIDDEN, _RESET_OFF)
        name = parameter(request, "connector")
        return await self._done(request, HTTPStatus.ACCEPTED, lambda: self._herder.reset_active_topics(name))

    def _require_tracking(self) -> None:
        if not self._tracking.enabled:
            raise ConnectError(HTTPStatus.FORBIDDEN, _TRACKING_OFF)

    async def _offsets(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        return json_answer(
            objects.connector_offsets(await self._calls.run(lambda: self._herder.offsets(name)))
        )

    async def _alter_offsets(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        body = await read_body(request)
        offsets = offsets_to_alter(body)

        def alter() -> Answer:
            self._herder.alter_offsets(name, offsets)
            return json_answer(objects.message(_ALTERED))

        return await self._calls.run_on_leader(request, body, alter)

    async def _reset_offsets(self, request: Request) -> Answer:
        name = parameter(request, "connector")

        def reset() -> Answer:
            self._herder.reset_offsets(name)
            return json_answer(objects.message(_RESET))

        return await self._calls.run_on_leader(request, b"", reset)

    async def _done(self, request: Request, status: HTTPStatus, action: Callable[[], None]) -> Answer:
        def act() -> Answer:
            action()
            return empty_answer(status)

        return await self._calls.run_on_leader(request, b"", act)


def _created(request: Request, info: ConnectorInfo) -> Answer:
    answer = json_answer(objects.connector_info(info), HTTPStatus.CREATED)
    answer.headers["Location"] = f"{request.base_url}connectors/{encoded(info.name)}"
    return answer


def _task(request: Request) -> int:
    """A task's number: what is none is no path of the API."""
    text = parameter(request, "task")
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or abs(int(text)) > _INT_MAX:
        raise http_error(HTTPStatus.NOT_FOUND)
    return int(text)
