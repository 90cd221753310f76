"""Sends requests to a Connect REST API exactly as given and makes responses comparable."""

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

_ANSWER_TIMEOUT_S: Final = 100.0
_SETTLING_S: Final = 60.0
_PAUSE_S: Final = 0.1
_COMPARED_HEADERS: Final = ("Content-Type", "Location", "Allow")
_MASKS: Final = (
    (re.compile(r"\b(?:127\.0\.0\.1|localhost):\d+"), "HOST:PORT"),
    (re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z"), "TIME"),
)
_UNTYPED: Final = {404, 405, 406, 415}
"""Errors of which Java sends no content type when no resource responded."""
_MASKED_FIELDS: Final = {"version", "commit", "kafka_cluster_id", "worker_id", "trace", "last_modified"}
"""Fields whose values differ between workers. Presence and type are still compared."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def message(self) -> str:
        """The message of an error, empty for other responses."""
        try:
            content = self.json()
        except ValueError:
            return ""
        return str(content.get("message", "")) if isinstance(content, dict) else ""

    def comparable(self, reduce: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """Return the parts in which two workers must agree, with varying values masked.

        `reduce` removes the parts of a JSON body that may differ.
        """
        headers = {name: self.headers[name] for name in _COMPARED_HEADERS if name in self.headers}
        if self.status in _UNTYPED:
            headers.pop("Content-Type", None)
        headers = {name: _masked_text(value) for name, value in headers.items()}
        if "Allow" in headers:
            # Java lists them in the order of a hash map; the body has the same content.
            return {"status": self.status, "allow": sorted(headers["Allow"].split(","))}
        try:
            content = self.json()
        except ValueError:
            return {"status": self.status, "headers": headers, "text": self.body.decode()}
        return {
            "status": self.status,
            "headers": headers,
            "body": _masked(reduce(content) if reduce else content),
        }

    def is_well_formed(self) -> bool:
        """Whether an error has Connect's JSON form."""
        if self.status < 400:
            return True
        content = self.json()
        return set(content) == {"error_code", "message"} and content["error_code"] == self.status


def _masked(content: Any) -> Any:
    match content:
        case dict():
            return {
                key: _hidden(value) if key in _MASKED_FIELDS else _masked(value)
                for key, value in content.items()
            }
        case list() if all(isinstance(item, str) for item in content):
            return sorted(map(_masked_text, content))
        case list():
            return [_masked(item) for item in content]
        case str():
            return _masked_text(content)
        case _:
            return content


def _hidden(value: Any) -> str:
    return type(value).__name__


def _masked_text(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose `path` is sent unchanged."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_bootstrap(self, servers: str) -> "Request":
        """Replace BOOTSTRAP in the body by the servers."""
        if self.body is None:
            return self
        return replace(self, body=self.body.replace(b"BOOTSTRAP", servers.encode()))

    def __str__(self) -> str:
        said = f" {self.body[:60]!r}" if self.body is not None else ""
        headers = f" {dict(self.headers)}" if self.headers else ""
        return f"{self.method} {self.path}{said}{headers}"


def ask(url: str, request: Request) -> Answer:
    host = urlsplit(url)
    connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=_ANSWER_TIMEOUT_S)
    try:
        connection.request(request.method, request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        headers = {name.title(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, answer.read())
    finally:
        connection.close()


def ask_until(url: str, request: Request, enough: Callable[[Answer], bool]) -> Answer:
    """Repeat the request until `enough` accepts the response: a worker may rebalance or start tasks."""
    deadline = time.monotonic() + _SETTLING_S
    while not enough(answer := ask(url, request)):
        assert time.monotonic() < deadline, f"{request} still answers {answer}"
        time.sleep(_PAUSE_S)
    return answer


def calm(answer: Answer) -> bool:
    """Whether the response is not that of a worker during a rebalance."""
    return answer.status < 400 or "rebalance" not in answer.message()


def running(tasks: int) -> Callable[[Answer], bool]:
    """Accept a status in which the connector and this many tasks run."""

    def enough(answer: Answer) -> bool:
        return states(answer) == ["RUNNING"] * (tasks + 1)

    return enough


def connector_is(state: str, tasks: int = 0) -> Callable[[Answer], bool]:
    def enough(answer: Answer) -> bool:
        return states(answer) == [state] * (tasks + 1)

    return enough


def without_offsets(answer: Answer) -> bool:
    """Accept the offsets of a connector after a reset. Java removes the partition after the offset."""
    return answer.status == 200 and answer.json() == {"offsets": []}


def with_offsets(answer: Answer) -> bool:
    """Accept offsets of an altered connector. Java shows only the partitions that its reader has reached."""
    return answer.status == 200 and answer.json() != {"offsets": []}


def states(answer: Answer) -> Sequence[str]:
    """Return the states of a connector and of its tasks."""
    if answer.status != 200:
        return []
    status = answer.json()
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
