"""Builds the REST API's ASGI applications: the resources' routes over a node, and the layers around them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.authentication import Authentication
from sparkmirror.connect.rest.browser_requests import BrowserRequests
from sparkmirror.connect.rest.connector_plugins import Plugins, PluginsResource
from sparkmirror.connect.rest.connectors import ConnectorsResource
from sparkmirror.connect.rest.dispatch import CaughtErrors, Endpoint
from sparkmirror.connect.rest.failed_logins import FailedLogins
from sparkmirror.connect.rest.forwarding import Forwarder
from sparkmirror.connect.rest.herder_calls import LEADER_FOUND_S, HerderCalls
from sparkmirror.connect.rest.herder_protocol import Herder
from sparkmirror.connect.rest.internal_requests import InternalRequests
from sparkmirror.connect.rest.loggers import LoggersResource
from sparkmirror.connect.rest.login_settings import accepted_logins
from sparkmirror.connect.rest.page_actions import PageActions
from sparkmirror.connect.rest.paths import CanonicalPaths
from sparkmirror.connect.rest.response_headers import CrossOrigin, ResponseHeaders, SafeContent
from sparkmirror.connect.rest.responses import error_response, http_error
from sparkmirror.connect.rest.rest_settings import RestSettings
from sparkmirror.connect.rest.worker_info import Metrics, WorkerInfoResource
from sparkmirror.plan.flow_plan_json import from_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.mirror_response import mirror_response
from sparkmirror.ui.plans import Plans
from sparkmirror.ui.routes import PagesResource


@dataclass(frozen=True, slots=True)
class Node:
    """The parts of a worker that the API serves."""

    herder: Herder
    plugins: Plugins
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
        return CanonicalPaths(Authentication(_router(served), logins, failed))

    if settings.admin_listeners is None:
        return ConnectApp(_around(known([*main, *admin]), settings))
    return ConnectApp(_around(known(main), settings), guarded(known(admin), settings))


def routes(
    node: Node, settings: RestSettings, leader_found_s: float = LEADER_FOUND_S
) -> tuple[list[Route], list[Route]]:
    """The routes for every client, and those for administrators."""
    calls = HerderCalls(Forwarder(settings.tls), lambda: node.herder.leader_url, leader_found_s)
    actions = PageActions(node.herder, calls, is_on=settings.pages_may_act)
    internal = InternalRequests(node.herder, settings.verification_algorithms)
    main = [
        *ConnectorsResource(node.herder, calls, settings.topic_tracking, internal).routes(),
        *PluginsResource(node.plugins, calls).routes(),
        *WorkerInfoResource(node.herder, node.metrics, calls).routes(),
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
        Route("/mirror", Endpoint({"GET": mirror}, consumes_json=False)),
        *PagesResource(view, on_leader, actions, plans).routes(),
    ]


def _around(app: ASGIApp, settings: RestSettings) -> ASGIApp:
    """Adds the configured headers, which Connect adds to the main listeners' responses only."""
    app = guarded(app, settings)
    if settings.header_rules:
        app = ResponseHeaders(app, settings.header_rules)
    if settings.allowed_origins is not None:
        app = CrossOrigin(app, settings.allowed_origins, settings.allowed_methods)
    return app


def guarded(app: ASGIApp, settings: RestSettings) -> ASGIApp:
    """Refuses what pages of other sites send, and keeps browsers from guessing types."""
    return SafeContent(CaughtErrors(BrowserRequests(app, settings.own_hosts, settings.allowed_origins)))


def _router(served: Sequence[Route]) -> ASGIApp:
    return Router(list(served), redirect_slashes=False, default=not_found)


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(http_error(HTTPStatus.NOT_FOUND))(scope, receive, send)
