"""Whatever is sent to whichever endpoint, the answer is one of Connect's, soon, and holds no secret.

The endpoints are those of the route table, so those of a later version too.
"""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from starlette.routing import Route

from sparkmirror.config.properties import Properties
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.app import Node, routes
from sparkmirror.connect.rest.authentication import READING
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view import making
from tests.rest.any_requests import SECRET_FILE, VERBS, AnyRequests
from tests.rest.safe_answers import ask_any, require_safe
from tests.support import rest_serving
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_requests import Request
from tests.support.rest_serving import serving
from tests.support.slow_requests import CONFIG

CPU_S_MAX: Final = 1.0
"""The most CPU of this process, client and worker, for one request."""
SECRET: Final = "planted-behind-a-placeholder"
SEED: Final = 6
DRAWN: Final = {"GET": 40, "HEAD": 5, "OPTIONS": 5}
DRAWN_WITH_BODY: Final = 80
"""Requests for each verb that an endpoint serves; it gets two for each of the others."""
PAGE: Final = ("text/plain", b"up 1\n")
FILE_PROVIDER: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"


class HerderWithSecrets(MemoryHerder):
    """The herder of a worker whose file has a provider, of which a config's author may make use."""

    def __init__(self, secrets: Path) -> None:
        super().__init__()
        self.worker = Properties(
            {
                "config.providers": "file",
                "config.providers.file.class": FILE_PROVIDER,
                "connector.allowed.paths": str(secrets.parent),
            }
        )


class Served(NamedTuple):
    url: str
    secrets: Path


def view() -> CurrentView:
    return CurrentView(lambda: making.Node("leader", "1.0"), list)


def listed() -> Sequence[Route]:
    node = Node(MemoryHerder(), LogLevels(), lambda: PAGE, view())
    return [*itertools.chain(*routes(node, rest_serving.settings()))]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("secrets") / "secrets.properties"
    file.write_text(f"planted={SECRET}\n")
    with serving(HerderWithSecrets(file), None, lambda: PAGE, view=view()) as url:
        yield Served(url, file)


@pytest.mark.parametrize("route", listed(), ids=lambda route: route.path)
def test_any_request_gets_one_of_connects_answers(served: Served, route: Route) -> None:
    drawing = AnyRequests(f"{SEED} {route.path}")
    verbs = route.endpoint.verbs if isinstance(route.endpoint, Endpoint) else {"GET", "HEAD"}
    for verb in VERBS:
        for number in range(DRAWN.get(verb, DRAWN_WITH_BODY) if verb in verbs else 2):
            if number % 10 == 0 and "{connector}" in route.path:
                exists(served)
            require_answered(served, drawing.draw(verb, route.path))


def require_answered(served: Served, request: Request) -> None:
    if request.body is not None:
        body = request.body.replace(SECRET_FILE.encode(), str(served.secrets).encode())
        request = replace(request, body=body)
    before = time.process_time()
    answer = ask_any(served.url, request)
    spent = time.process_time() - before
    require_safe(answer, request, SECRET)
    assert spent < CPU_S_MAX, request


@pytest.mark.parametrize("route", listed(), ids=lambda route: route.path)
def test_no_path_can_be_reached_from_pages_of_other_sites(served: Served, route: Route) -> None:
    path = route.path.replace("{", "").replace("}", "")
    for verb in VERBS:
        foreign = [{"Host": "evil.example"}]
        if verb not in READING:
            foreign += [
                {"Origin": "http://evil.example"},
                {"Origin": "null"},
                {"Sec-Fetch-Site": "cross-site"},
            ]
        for headers in foreign:
            assert ask_any(served.url, Request(verb, path, None, headers)).status == 403, (verb, headers)


JSON: Final = {"Content-Type": "application/json"}
VALIDATE: Final = "/connector-plugins/MirrorSourceConnector/config/validate"
ONCE_500: Final = {
    "digits": Request("GET", f"/connectors/x/tasks/{'9' * 5000}/status"),
    "signs": Request("POST", "/connectors/x/tasks/-+5/restart"),
    "origin": Request("POST", "/connectors", b"{}", {**JSON, "Origin": "http://["}),
    "infinity": Request("PATCH", "/connectors/x/offsets", b'{"offsets":[{"partition":{"a":1e999}}]}', JSON),
    "null": Request("PUT", VALIDATE, b'{"name":"x","topics":"${file:\\u0000:x}"}', JSON),
}


@pytest.mark.parametrize("request_", ONCE_500.values(), ids=ONCE_500)
def test_requests_that_were_not_understood_are_refused(served: Served, request_: Request) -> None:
    exists(served)
    require_answered(served, request_)
    offsets = Request("GET", "/connectors/x/offsets")
    require_answered(served, offsets)


def exists(served: Served) -> None:
    """A stopped connector, whose offsets may change."""
    for method, path, body in (("PUT", "config", json.dumps(CONFIG).encode()), ("PUT", "stop", None)):
        assert ask_any(served.url, Request(method, f"/connectors/x/{path}", body, JSON)).status < 300
