"""A Connect REST API in memory with the endpoints that these tests use."""

import re
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from urllib3 import HTTPResponse

from sparkmirror.cli.command_runner import build_parser
from sparkmirror.client.connect_rest import Access, ConnectRest
from tests.support.rest_answers import Answering, Asked, answer, refusal

TRACE = (
    "org.apache.kafka.ConnectException: it broke\n\tat A.b(A.java:1)\nCaused by: java.io.IOException: no disk"
)


class SmallConnect:
    """`configs` and `states` may be changed at will; a configured connector runs, with one task."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.states: dict[str, str] = {}
        self.refused: set[str] = set()
        """Connectors that nobody can configure."""
        self.http = Answering(self._answer)

    def rest(self) -> ConnectRest:
        """A client whose waiting takes no time."""
        now_s = 0.0

        def sleep(seconds: float) -> None:
            nonlocal now_s
            now_s += seconds

        return ConnectRest(Access("http://connect:8083"), http=self.http, clock=lambda: now_s, sleep=sleep)

    def run(self, *words: str | Path) -> int:
        """The exit code of a command of `sparkmirror` that asks this API."""
        arguments = build_parser().parse_args([str(word) for word in words])
        code: int = arguments.run(arguments, connect=lambda _: closing(self.rest()))
        return code

    def changes(self) -> list[str]:
        """Return the requests that are no questions."""
        changing = (asked for asked in self.http.asked if asked.method != "GET")
        return [f"{asked.method} {asked.path}" for asked in changing]

    def _answer(self, asked: Asked) -> HTTPResponse:
        found = re.fullmatch(r"/connectors/([^/?]+)(/\w+)?(\?.*)?", asked.path)
        assert found is not None, asked
        name, what = unquote(found[1]), found[2] or ""
        if asked.method == "PUT" and what == "/config":
            return self.put(name, asked.body)
        if name not in self.configs:
            return refusal(404, f"Connector {name} not found")
        match asked.method, what:
            case "GET", "/config":
                return answer(200, self.configs[name])
            case "GET", "/status":
                return answer(200, self.status(name))
            case ("POST", "/restart") | ("PUT", "/pause" | "/resume"):
                pass
            case "DELETE", _:
                del self.configs[name], self.states[name]
            case _:
                raise AssertionError(asked)
        return answer(204)

    def status(self, name: str) -> dict[str, Any]:
        state = self.states[name]
        failure = {"trace": TRACE} if state == "FAILED" else {}
        run = {"state": state, "worker_id": "w:8083", **failure}
        return {"name": name, "connector": run, "tasks": [{"id": 0, **run}], "type": "source"}

    def put(self, name: str, config: dict[str, str]) -> HTTPResponse:
        if name in self.refused:
            return refusal(400, "Connector configuration is invalid")
        is_new = name not in self.configs
        self.configs[name] = {**config, "name": name}
        if self.states.get(name) not in ("PAUSED", "STOPPED"):  # which outlive a PUT
            self.states[name] = "RUNNING"
        info = {"name": name, "config": self.configs[name], "tasks": []}
        return answer(HTTPStatus.CREATED if is_new else HTTPStatus.OK, info)
