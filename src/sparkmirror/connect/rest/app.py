"""The REST API as ASGI applications over a node: what is served, and what is around it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.log_levels import LogLevels
from sparkmirror.connect.rest.answers import Answer
from sparkmirror.connect.rest.connectors import ConnectorsResource
from sparkmirror.connect.rest.cors import CrossOrigin
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.rest.errors import error_answer, http_error
from sparkmirror.connect.rest.forwarding import Forwarder
from sparkmirror.connect.rest.herder import Herder
from sparkmirror.connect.rest.herder_calls import HerderCalls
from sparkmirror.connect.rest.internal import InternalRequests
from sparkmirror.connect.rest.loggers import LoggersResource
from sparkmirror.connect.rest.openapi import openapi_routes
from sparkmirror.connect.rest.paths import CanonicalPaths
from sparkmirror.connect.rest.plan import PlanResource
from sparkmirror.connect.rest.plugins import Plugins, PluginsResource
from sparkmirror.connect.rest.response_headers import ResponseHeaders
from sparkmirror.connect.rest.root import RootResource
from sparkmirror.connect.rest.settings import RestSettings

Metrics = Callable[[], tuple[str, bytes]]
"""Content type and body of `/metrics`."""


@dataclass(frozen=True, slots=True)
class Node:
    """What the API is served over."""

    herder: Herder
    plugins: Plugins
    log_levels: LogLevels
    metrics: Metrics | None = None


class ConnectApp(NamedTuple):
    """`admin` is served by listeners of its own, where there are any."""

    main: ASGIApp
    admin: ASGIApp | None = None


def connect_app(node: Node, settings: RestSettings) -> ConnectApp:
    main, admin = routes(node, settings)
    if settings.admin_listeners is None:
        return ConnectApp(_around([*main, *admin], settings))
    return ConnectApp(_around(main, settings), CanonicalPaths(_router(admin)))


def routes(node: Node, settings: RestSettings) -> tuple[list[Route], list[Route]]:
    """What is served to everybody, and what to administrators."""
    calls = HerderCalls(Forwarder(settings.tls), lambda: node.herder.leader_url)
    internal = InternalRequests(node.herder, settings.verification_algorithms)
    main = [
        *ConnectorsResource(node.herder, calls, settings.topic_tracking, internal).routes(),
        *PlanResource(node.herder, calls).routes(),
        *RootResource(node.herder).routes(),
        *PluginsResource(node.plugins, calls).routes(),
        *openapi_routes(),
    ]
    if node.metrics is not None:
        main.append(_metrics_route(node.metrics, calls))
    return main, LoggersResource(node.herder, node.log_levels, calls).routes()


def _around(served: Sequence[Route], settings: RestSettings) -> ASGIApp:
    """With the headers that an operator wants, which Connect adds to the main listeners' answers only."""
    app: ASGIApp = CanonicalPaths(_router(served))
    if settings.header_rules:
        app = ResponseHeaders(app, settings.header_rules)
    if settings.allowed_origins is not None:
        app = CrossOrigin(app, settings.allowed_origins, settings.allowed_methods)
    return app


def _router(served: Sequence[Route]) -> ASGIApp:
    return Router(list(served), redirect_slashes=False, default=_not_found)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await error_answer(http_error(HTTPStatus.NOT_FOUND))(scope, receive, send)


def _metrics_route(metrics: Metrics, calls: HerderCalls) -> Route:
    async def answer(_request: Request) -> Answer:
        content_type, body = await calls.run(metrics)
        return Response(body, headers={"Content-Type": content_type})

    return Route("/metrics", Endpoint({"GET": answer}, consumes_json=False, produces_json=False))
