"""`/connectors/{connector}/plan`: what a connector would do. A request of our own: Connect has none such."""

from starlette.requests import Request
from starlette.routing import Route

from sparkmirror.connect.rest.answers import Answer, json_answer
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.rest.herder import Herder
from sparkmirror.connect.rest.herder_calls import HerderCalls
from sparkmirror.connect.rest.paths import parameter


class PlanResource:
    def __init__(self, herder: Herder, calls: HerderCalls) -> None:
        self._herder = herder
        self._calls = calls

    def routes(self) -> list[Route]:
        return [Route("/connectors/{connector}/plan", Endpoint({"GET": self._plan}))]

    async def _plan(self, request: Request) -> Answer:
        name = parameter(request, "connector")
        return await self._calls.run_on_leader(request, b"", lambda: json_answer(self._herder.plan(name)))
