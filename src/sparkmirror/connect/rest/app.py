"""Builds the ASGI applications: a worker's REST API, and the pages and metrics of a process without one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.authentication import Authentication, FailedLogins, Logins
from sparkmirror.connect.rest.browsers import (
    BrowserRequests,
    CrossOrigin,
    ResponseHeaders,
    add_safe_headers,
    apply_rules,
)
from sparkmirror.connect.rest.connector_plugins import PluginsResource
from sparkmirror.connect.rest.connectors import ConnectorsResource
from sparkmirror.connect.rest.dispatch import CaughtErrors, Endpoint
from sparkmirror.connect.rest.forwarding import LEADER_FOUND_S, Forwarder, HerderCalls
from sparkmirror.connect.rest.loggers import LoggersResource
from sparkmirror.connect.rest.login_settings import LoginSettings, accepted_logins
from sparkmirror.connect.rest.page_actions import PageActions
from sparkmirror.connect.rest.responses import error_response, http_error, json_response
from sparkmirror.connect.rest.rest_settings import RestSettings
from sparkmirror.connect.rest.worker_info import Metrics, WorkerInfoResource, metrics_response
from sparkmirror.plan.flow_plan_json import from_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.mirror_response import health_response, mirror_response
from sparkmirror.ui.plans import Plans
from sparkmirror.ui.routes import PagesResource, run_here


@dataclass(frozen=True, slots=True)
class Node:
    """The parts of a worker that the API serves."""

    herder: Herder
    log_levels: LogLevels
    metrics: Metrics | None = None
    view: CurrentView | None = None


class ConnectApp(NamedTuple):
    """`admin` is served by the listeners of `admin.listeners`; None without any."""

    main: ASGIApp
    admin: ASGIApp | None = None


def connect_app(node: Node, settings: RestSettings, *, leader_found_s: float = LEADER_FOUND_S) -> ConnectApp:
    """Requests that only the leader can serve wait `leader_found_s` for the election of one."""
    main, admin = routes(node, settings, leader_found_s)
    logins, failed = accepted_logins(settings.logins), FailedLogins()

    def known(served: Sequence[Route]) -> ASGIApp:
        return _routed(served, logins, failed)

    if settings.admin_listeners is None:
        return ConnectApp(_around(known([*main, *admin]), settings))
    return ConnectApp(_around(known(main), settings), guarded(known(admin), settings))


def routes(
    node: Node, settings: RestSettings, leader_found_s: float = LEADER_FOUND_S
) -> tuple[list[Route], list[Route]]:
    """The routes for every client, and those for administrators."""
    calls = HerderCalls(Forwarder(settings.tls), lambda: node.herder.leader_url, leader_found_s)
    actions = PageActions(node.herder, calls, is_on=settings.pages_may_act)
    main = [
        *ConnectorsResource(node.herder, calls, settings.topic_tracking).routes(),
        *PluginsResource(node.herder, calls).routes(),
        *WorkerInfoResource(node.herder, node.metrics, node.view, calls).routes(),
        *([] if node.view is None else _view_routes(node, node.view, calls, actions)),
    ]
    return main, LoggersResource(node.herder, node.log_levels, calls).routes()


def _view_routes(node: Node, view: CurrentView, calls: HerderCalls, actions: PageActions) -> list[Route]:
    """The leader has the view: other nodes forward to it."""

    def on_leader(request: Request, action: Callable[[], Response]) -> Awaitable[Response]:
        return calls.run_on_leader(request, b"", action)

    async def mirror(request: Request) -> Response:
        return await on_leader(request, lambda: mirror_response(view.get(), request.query_params))

    plans = Plans(lambda _flow, connector: from_json(node.herder.plan(connector)))
    return [
        Route("/mirror", Endpoint({"GET": mirror})),
        *PagesResource(view, on_leader, actions, plans).routes(),
    ]


def _around(app: ASGIApp, settings: RestSettings) -> ASGIApp:
    """Adds the configured headers, which Connect adds to the main listeners' responses only."""
    app = guarded(app, settings)
    if settings.header_rules:
        app = ResponseHeaders(app, apply_rules(settings.header_rules))
    if settings.allowed_origins is not None:
        app = CrossOrigin(app, settings.allowed_origins, settings.allowed_methods)
    return app


def guarded(app: ASGIApp, settings: RestSettings) -> ASGIApp:
    """Refuses what pages of other sites send, and keeps browsers from guessing types."""
    app = CaughtErrors(BrowserRequests(app, settings.own_hosts, settings.allowed_origins))
    return ResponseHeaders(app, add_safe_headers)


def _routed(served: Sequence[Route], logins: Logins, failed: FailedLogins) -> ASGIApp:
    """A slash at the end of a path is ignored, as in Connect."""
    app = Authentication(Router(list(served), redirect_slashes=False, default=_not_found), logins, failed)

    async def without_slash(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "path": scope["path"].removesuffix("/") or "/"}, receive, send)

    return without_slash


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(http_error(HTTPStatus.NOT_FOUND))(scope, receive, send)


def mirror_app(
    view: CurrentView,
    metrics: Metrics,
    is_started: Callable[[], bool],
    settings: RestSettings,
    plans: Plans | None = None,
) -> ASGIApp:
    async def mirror(request: Request) -> Response:
        return await run_here(request, lambda: mirror_response(view.get(), request.query_params))

    async def pages(_request: Request) -> Response:
        return RedirectResponse("ui/")  # relative: a proxy may add a prefix

    served = [
        Route("/", Endpoint({"GET": pages})),
        *PagesResource(view, run_here, plans=plans).routes(),
        Route("/mirror", Endpoint({"GET": mirror})),
        *_reports(view, metrics, is_started),
    ]
    return guarded(_open(served), settings)


def metrics_app(view: CurrentView, metrics: Metrics, is_started: Callable[[], bool]) -> ASGIApp:
    """`/metrics` and `/health` only, by whatever name the host is addressed."""
    return ResponseHeaders(CaughtErrors(_open(_reports(view, metrics, is_started))), add_safe_headers)


def _reports(view: CurrentView, metrics: Metrics, is_started: Callable[[], bool]) -> list[Route]:
    async def page(request: Request) -> Response:
        accepted = request.headers.get("Accept-Encoding")
        return await run_here(request, partial(metrics_response, metrics, accepted))

    async def health(request: Request) -> Response:
        if is_started():
            return await run_here(request, lambda: health_response(view.get()))
        starting = {"status": "starting", "message": "The mirror is still starting up."}
        return json_response(starting, HTTPStatus.SERVICE_UNAVAILABLE)

    return [
        Route("/metrics", Endpoint({"GET": page})),
        Route("/health", Endpoint({"GET": health})),
    ]


def _open(served: Sequence[Route]) -> ASGIApp:
    """Asks nobody to log in."""
    return _routed(served, accepted_logins(LoginSettings()), FailedLogins())
