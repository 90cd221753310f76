"""Serves what describes this worker: `/`, `/health`, `/metrics`, `/openapi.json` and `/docs`.

`openapi.json` is served from the file of that name, with Kafka's names and summaries; `/docs` shows it in a
browser. Internal requests are left out, as in Kafka's own description.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sparkmirror import __version__
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.rest.browsers import CONTENT_POLICY
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.forwarding import HerderCalls
from sparkmirror.connect.rest.responses import Metrics, json_response, metrics_response
from sparkmirror.connect.validation import KAFKA_VERSION
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.ui.mirror_response import ill_flows
from sparkmirror.ui.routes import run_here

_COMMIT: Final = f"sparkmirror-{__version__}"
"""Clients choose requests by `version`, so that is the API's; `commit` names sparkmirror."""


class WorkerInfoResource:
    def __init__(
        self, herder: Herder, metrics: Metrics | None, view: CurrentView | None, calls: HerderCalls
    ) -> None:
        self._herder = herder
        self._metrics = metrics
        self._view = view
        self._calls = calls

    def routes(self) -> list[Route]:
        served = [
            Route("/", Endpoint({"GET": self._server_info})),
            Route("/health", Endpoint({"GET": self._health})),
            Route("/openapi.json", Endpoint({"GET": _openapi})),
            Route("/docs", Endpoint({"GET": _docs})),
        ]
        if self._metrics is not None:
            served.append(Route("/metrics", Endpoint({"GET": self._metrics_page})))
        return served

    async def _server_info(self, _request: Request) -> Response:
        return json_response(
            {"version": KAFKA_VERSION, "commit": _COMMIT, "kafka_cluster_id": self._herder.kafka_cluster_id()}
        )

    async def _health(self, request: Request) -> Response:
        return await run_here(request, self._health_now)

    def _health_now(self) -> Response:
        """Answer as Java's worker does; the leader's message names the flows that are not well, too."""
        health = self._herder.health()
        if not health.started:
            state, status = "starting", HTTPStatus.SERVICE_UNAVAILABLE
        elif not health.healthy:
            state, status = "unhealthy", HTTPStatus.INTERNAL_SERVER_ERROR
        else:
            state, status = "healthy", HTTPStatus.OK
        message = "\n".join([health.message, *self._ill_flows()])
        return json_response({"status": state, "message": message}, status)

    def _ill_flows(self) -> Sequence[str]:
        with suppress(SparkmirrorError):  # another node has the view
            return [] if self._view is None else ill_flows(self._view.get())
        return []

    async def _metrics_page(self, request: Request) -> Response:
        assert self._metrics is not None
        accepted = request.headers.get("Accept-Encoding")
        return await self._calls.run(partial(metrics_response, self._metrics, accepted))


async def _openapi(_request: Request) -> Response:
    return json_response(openapi())


async def _docs(_request: Request) -> Response:
    page = _packaged("docs.html")
    return HTMLResponse(page, headers={"Content-Security-Policy": _policy_of(page)})


@cache
def openapi() -> dict[str, Any]:
    """The API's description in OpenAPI 3.0."""
    description: dict[str, Any] = json.loads(_packaged("openapi.json"))
    description["info"]["version"] = KAFKA_VERSION
    return description


@cache
def _policy_of(page: str) -> str:
    """Return a policy that allows the page its own style and script, and requests to this API."""
    allowed = [f"{CONTENT_POLICY}; connect-src 'self'"]
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed.append(f"{tag}-src 'sha256-{digest}'")
    return "; ".join(allowed)


def _packaged(name: str) -> str:
    return (files("sparkmirror.connect.rest") / name).read_text(encoding="utf-8")
