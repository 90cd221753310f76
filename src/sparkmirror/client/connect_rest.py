"""Sends requests to any Connect REST API, Java's included.

Responses are returned unchanged, after a check of their shape. Requests that a worker refuses because of a
rebalance are retried, for a minute by default.
"""

import base64
import json
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote, urlencode

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from sparkmirror.client.connect_objects import (
    ConnectorInfo,
    ConnectorStateInfo,
    Expanded,
)
from sparkmirror.client.literal_paths import LiteralPaths
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import SparkmirrorError

_CONNECT_TIMEOUT_S: Final = 5.0
_READ_TIMEOUT_S: Final = 95.0
"""A worker itself gives up after 90 s, with an error message."""
_RETRY_TIMEOUT_S: Final = 60.0
_BACKOFF: Final = Backoff(0.25, 3.0)
_EXPECTED_REBALANCE: Final = "rebalance is expected"
"""Java's workers respond with 500 to some requests while a rebalance is due."""
_JSON: Final = "application/json"
_AMBIGUOUS: Final = re.compile("%(?:2F|5C|25|2E|[01].|7F)")
"""Jetty refuses such a path before Connect handles it."""


T = TypeVar("T")


class ConnectRefusedError(SparkmirrorError):
    """The API refused a request; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{_status_text(status)}: {message}" if message else _status_text(status))
        self.status = status


class ConnectBusyError(ConnectRefusedError):
    """The group rebalances, or the worker starts."""

    retriable = True


class ConnectUnreachableError(SparkmirrorError):
    """The URL has no server, or one that is no Connect worker."""


@dataclass(frozen=True, slots=True)
class Access:
    """The URL and credentials of an API. Files are PEM; without `ca`, the system's trusted CAs apply."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    token: str | None = field(default=None, repr=False)
    """A bearer token, instead of a user."""


class _Response(NamedTuple):
    status: int
    content: Any


class Http(Protocol):
    """Sends requests as urllib3's PoolManager does."""

    def request(
        self, method: str, url: str, *, body: bytes | None, headers: Mapping[str, str], **how: Any
    ) -> urllib3.BaseHTTPResponse: ...

    def clear(self) -> None: ...


class ConnectRest:
    """Sends requests. Methods raise ConnectRefusedError and ConnectUnreachableError. Must be closed.

    `clock` and `sleep` also serve callers that wait for a state.
    """

    def __init__(
        self,
        access: Access,
        *,
        http: Http | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = access.url.rstrip("/")
        self._headers = {"Accept": _JSON, **_authorization(access)}
        self.clock = clock
        self.sleep = sleep
        self._http = http or _pool(access)

    def close(self) -> None:
        self._http.clear()

    def connectors(self) -> list[str]:
        return self._list("/connectors")

    def expanded(self) -> dict[str, Expanded]:
        """Status and info of all connectors with a status; a new one has none for a moment."""
        found = self._dict("/connectors?expand=status&expand=info")
        for each in found.values():
            self._status(self._shaped(each, dict).get("status"))
        return cast("dict[str, Expanded]", found)

    def config(self, name: str) -> dict[str, str]:
        return self._dict(f"{_connector(name)}/config")

    def status(self, name: str) -> ConnectorStateInfo:
        return self._status(self._send("GET", f"{_connector(name)}/status").content)

    def put(self, name: str, config: Mapping[str, str]) -> tuple[bool, ConnectorInfo]:
        """Return whether the connector was created, and its present state."""
        answer = self._send("PUT", f"{_connector(name)}/config", dict(config))
        return answer.status == HTTPStatus.CREATED, cast("ConnectorInfo", self._shaped(answer.content, dict))

    def delete(self, name: str) -> None:
        self._send("DELETE", _connector(name))

    def pause(self, name: str) -> None:
        self._send("PUT", f"{_connector(name)}/pause")

    def resume(self, name: str) -> None:
        self._send("PUT", f"{_connector(name)}/resume")

    def restart(self, name: str, *, include_tasks: bool = False, only_failed: bool = False) -> None:
        """KIP-745. Unless `include_tasks`, the tasks keep running."""
        flags = {"includeTasks": include_tasks, "onlyFailed": only_failed}
        query = urlencode({flag: "true" for flag, is_set in flags.items() if is_set})
        self._send("POST", f"{_connector(name)}/restart{'?' if query else ''}{query}")

    def plan(self, name: str) -> dict[str, Any]:
        """The plan of a MirrorSourceConnector; only sparkmirror's workers have this endpoint."""
        return self._dict(f"{_connector(name)}/plan")

    def mirror(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Read what a mirror does now.

        Only sparkmirror has this endpoint, also where it serves no Connect.
        """
        return self._dict(f"/mirror?{urlencode(parameters)}")

    def _list(self, path: str) -> list[Any]:
        return self._shaped(self._send("GET", path).content, list)

    def _dict(self, path: str) -> dict[str, Any]:
        return self._shaped(self._send("GET", path).content, dict)

    def _status(self, found: object) -> ConnectorStateInfo:
        status = self._shaped(found, dict)
        states = [status.get("connector"), *self._shaped(status.get("tasks"), list)]
        if not all(isinstance(self._shaped(each, dict).get("state"), str) for each in states):
            raise self._not_connect("a status without states")
        return cast("ConnectorStateInfo", status)

    def _shaped(self, content: object, shape: type[T]) -> T:
        if not isinstance(content, shape):
            raise self._not_connect(f"{type(content).__name__} where {shape.__name__} is expected")
        return content

    def _not_connect(self, what: str) -> ConnectUnreachableError:
        return ConnectUnreachableError(f"{self.url} answers with {what}: is it a Connect REST API?")

    def _send(self, method: str, path: str, body: object = None) -> _Response:
        deadline = self.clock() + _RETRY_TIMEOUT_S
        failures = 0
        while True:
            try:
                return self._send_once(method, path, body)
            except ConnectBusyError:
                failures += 1
                delay_s = _BACKOFF.delay_s(failures, random.random())
                if self.clock() + delay_s > deadline:
                    raise
                self.sleep(delay_s)

    def _send_once(self, method: str, path: str, body: object) -> _Response:
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = self._headers if content is None else {**self._headers, "Content-Type": _JSON}
        try:
            answer = self._http.request(
                method, f"{self.url}{path}", body=content, headers=headers, retries=False, redirect=False
            )
        except (HTTPError, OSError) as error:
            raise ConnectUnreachableError(f"{self.url}: {_cause(error)}") from error
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise _refusal(answer.status, _error_message(answer.data) or _guess(answer.status, path))
        if not answer.data:
            return _Response(answer.status, None)
        try:
            return _Response(answer.status, json.loads(answer.data))
        except (ValueError, RecursionError):
            kind = answer.headers.get("Content-Type", "bytes")
            raise self._not_connect(f"{kind}, which is no JSON") from None


def _pool(access: Access) -> Http:
    pool: Http = LiteralPaths(
        timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
        cert_reqs="CERT_REQUIRED",
        ca_certs=_path(access.ca),
        cert_file=_path(access.cert),
        key_file=_path(access.key),
    )
    return pool


def _connector(name: str) -> str:
    return f"/connectors/{_quoted(name)}"


def _quoted(name: str) -> str:
    """Encode any name as one segment of a path; `.` and `..` would be taken for folders."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _path(file: Path | None) -> str | None:
    return None if file is None else str(file)


def _authorization(access: Access) -> dict[str, str]:
    if access.token is not None:
        return {"Authorization": f"Bearer {access.token}"}
    if access.user is None:
        return {}
    credentials = f"{access.user}:{access.password or ''}".encode()
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode()}"}


def _refusal(status: int, message: str) -> ConnectRefusedError:
    is_busy = status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.CONFLICT) or (
        status == HTTPStatus.INTERNAL_SERVER_ERROR and _EXPECTED_REBALANCE in message
    )
    return ConnectBusyError(status, message) if is_busy else ConnectRefusedError(status, message)


def _error_message(body: bytes) -> str:
    """Connect's error message; empty for other servers' error pages."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(content.get("message") or "") if isinstance(content, dict) else ""


def _guess(status: int, path: str) -> str:
    """The likely cause of an error without a message."""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "a login is required, or another one: --user and --password-file, or --token-file"
    if status == HTTPStatus.BAD_REQUEST and _AMBIGUOUS.search(path):
        return "Java's workers accept no names with / \\ % or control characters, nor names of dots"
    return ""


def _status_text(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _cause(error: Exception) -> str:
    """The cause of a failed request, and what to check."""
    match error:
        case NameResolutionError():
            return "unknown host; check the URL"
        case NewConnectionError():
            return (
                "no server responds; does a Connect worker run there, and is that the port of its listeners"
                " (8083 by default)?"
            )
        case ConnectTimeoutError():
            return f"no connection within {_CONNECT_TIMEOUT_S:g} s; check the URL and firewalls"
        case ReadTimeoutError():
            return f"no response within {_READ_TIMEOUT_S:g} s; the request may have been executed"
        case SSLError():
            return f"TLS fails: {error}; are --ca, --cert and --key the right ones?"
        case _:
            return (
                f"the connection broke: {error}; the request may have been executed. Does the URL begin"
                " with https:// where the worker requires TLS?"
            )
