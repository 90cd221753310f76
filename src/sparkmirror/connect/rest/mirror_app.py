"""Builds the applications of a process without a REST API: pages, `/mirror`, `/metrics` and `/health`."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from sparkmirror.connect.rest.app import guarded, not_found
from sparkmirror.connect.rest.authentication import Authentication
from sparkmirror.connect.rest.dispatch import CaughtErrors, Endpoint
from sparkmirror.connect.rest.failed_logins import FailedLogins
from sparkmirror.connect.rest.login_settings import LoginSettings, accepted_logins
from sparkmirror.connect.rest.paths import CanonicalPaths
from sparkmirror.connect.rest.response_headers import SafeContent
from sparkmirror.connect.rest.responses import json_response
from sparkmirror.connect.rest.rest_settings import RestSettings
from sparkmirror.connect.rest.worker_info import Metrics, metrics_response
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.mirror_response import mirror_response
from sparkmirror.ui.plans import Plans
from sparkmirror.ui.routes import PagesResource, run_here


def mirror_app(
    view: CurrentView,
    metrics: Metrics,
    is_started: Callable[[], bool],
    settings: RestSettings,
    plans: Plans | None = None,
) -> ASGIApp:
    async def mirror(request: Request) -> Response:
        return await run_here(request, lambda: mirror_response(view.get(), request.query_params))

    served = [
        *PagesResource(view, run_here, plans=plans).routes(),
        Route("/mirror", Endpoint({"GET": mirror}, consumes_json=False)),
        *_reports(metrics, is_started),
    ]
    return guarded(_routed(served), settings)


def metrics_app(metrics: Metrics, is_started: Callable[[], bool]) -> ASGIApp:
    """`/metrics` and `/health` only, by whatever name the host is addressed."""
    return SafeContent(CaughtErrors(_routed(_reports(metrics, is_started))))


def _reports(metrics: Metrics, is_started: Callable[[], bool]) -> list[Route]:
    async def page(request: Request) -> Response:
        accepted = request.headers.get("Accept-Encoding")
        return await run_here(request, partial(metrics_response, metrics, accepted))

    async def health(_request: Request) -> Response:
        if is_started():
            return json_response({"status": "healthy", "message": "The mirror runs."})
        starting = {"status": "starting", "message": "The mirror is still starting up."}
        return json_response(starting, HTTPStatus.SERVICE_UNAVAILABLE)

    any_type = {"consumes_json": False, "produces_json": False}
    return [
        Route("/metrics", Endpoint({"GET": page}, **any_type)),
        Route("/health", Endpoint({"GET": health}, **any_type)),
    ]


def _routed(served: list[Route]) -> ASGIApp:
    """Asks nobody to log in."""
    router = Router(served, redirect_slashes=False, default=not_found)
    return CanonicalPaths(Authentication(router, accepted_logins(LoginSettings()), FailedLogins()))
