"""Builds the ASGI application of a worker: the REST API, and the pages of its mirrors."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.authentication import FailedLogins
from sparkmirror.connect.rest.browsers import (
    CrossOrigin,
    ResponseHeaders,
    apply_rules,
)
from sparkmirror.connect.rest.connector_plugins import PluginsResource
from sparkmirror.connect.rest.connectors import ConnectorsResource
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.forwarding import LEADER_FOUND_S, Forwarder, HerderCalls
from sparkmirror.connect.rest.loggers import LoggersResource
from sparkmirror.connect.rest.login_settings import accepted_logins
from sparkmirror.connect.rest.mirror_app import ConnectApp, guarded, routed
from sparkmirror.connect.rest.page_actions import PageActions
from sparkmirror.connect.rest.responses import Metrics
from sparkmirror.connect.rest.rest_settings import RestSettings
from sparkmirror.connect.rest.worker_info import WorkerInfoResource
from sparkmirror.plan.flow_plan_json import from_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.mirror_response import mirror_response
from sparkmirror.ui.plans import Plans
from sparkmirror.ui.routes import PagesResource


@dataclass(frozen=True, slots=True)
class Node:
    """The parts of a worker that the API serves."""

    herder: Herder
    log_levels: LogLevels
    metrics: Metrics | None = None
    view: CurrentView | None = None


def connect_app(node: Node, settings: RestSettings, *, leader_found_s: float = LEADER_FOUND_S) -> ConnectApp:
    """Requests that only the leader can serve wait `leader_found_s` for the election of one."""
    main, admin = routes(node, settings, leader_found_s)
    logins, failed = accepted_logins(settings.logins), FailedLogins()

    def known(served: Sequence[Route]) -> ASGIApp:
        return routed(served, logins, failed)

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
