"""`/` and `/health`: which worker this is, and whether it can serve."""

from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.routing import Route

from sparkmirror import __version__
from sparkmirror.connect.rest.answers import Answer, json_answer
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.rest.herder import Herder
from sparkmirror.connect.validation import KAFKA_VERSION

_COMMIT: Final = f"sparkmirror-{__version__}"
"""Clients judge by the version what they may ask for, so that is the API's; this says whose it is."""


class RootResource:
    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def routes(self) -> list[Route]:
        return [
            Route("/", Endpoint({"GET": self._server_info}, consumes_json=False)),
            Route("/health", Endpoint({"GET": self._health}, consumes_json=False)),
        ]

    async def _server_info(self, _request: Request) -> Answer:
        return json_answer(
            {"version": KAFKA_VERSION, "commit": _COMMIT, "kafka_cluster_id": self._herder.kafka_cluster_id()}
        )

    async def _health(self, _request: Request) -> Answer:
        health = self._herder.health()
        if not health.started:
            return json_answer(
                {"status": "starting", "message": health.message}, HTTPStatus.SERVICE_UNAVAILABLE
            )
        if not health.healthy:
            return json_answer(
                {"status": "unhealthy", "message": health.message}, HTTPStatus.INTERNAL_SERVER_ERROR
            )
        return json_answer({"status": "healthy", "message": health.message})
