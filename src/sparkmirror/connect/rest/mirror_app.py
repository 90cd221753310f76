"""Builds the ASGI applications of a process without a REST API: pages and metrics. Needs no Spark."""

from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.rest.authentication import Authentication, FailedLogins, Logins
from sparkmirror.connect.rest.browsers import (
    BrowserRequests,
    ResponseHeaders,
    add_safe_headers,
)
from sparkmirror.connect.rest.dispatch import CaughtErrors, Endpoint
from sparkmirror.connect.rest.login_settings import LoginSettings, accepted_logins
from sparkmirror.connect.rest.responses import (
    Metrics,
    error_response,
    http_error,
    json_response,
    metrics_response,
)
from sparkmirror.connect.rest.rest_settings import RestSettings
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.mirror_response import health_response, mirror_response
from sparkmirror.ui.plans import Plans
from sparkmirror.ui.routes import PagesResource, run_here


class ConnectApp(NamedTuple):
    """`admin` is served by the listeners of `admin.listeners`; None without any."""

    main: ASGIApp
    admin: ASGIApp | None = None


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
    """Asks for no login."""
    return routed(served, accepted_logins(LoginSettings()), FailedLogins())


def guarded(app: ASGIApp, settings: RestSettings) -> ASGIApp:
    """Refuses what pages of other sites send, and keeps browsers from guessing types."""
    app = CaughtErrors(BrowserRequests(app, settings.own_hosts, settings.allowed_origins))
    return ResponseHeaders(app, add_safe_headers)


def routed(served: Sequence[Route], logins: Logins, failed: FailedLogins) -> ASGIApp:
    """A slash at the end of a path is ignored, as in Connect."""
    app = Authentication(Router(list(served), redirect_slashes=False, default=_not_found), logins, failed)

    async def without_slash(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "path": scope["path"].removesuffix("/") or "/"}, receive, send)

    return without_slash


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(http_error(HTTPStatus.NOT_FOUND))(scope, receive, send)
