"""Protects and serves browsers: refuses requests of other sites' pages, and adds headers to responses.

The API needs no login by default, so a page that a user happens to open must not reach it: neither by a
request to another site (the Origin is checked wherever something may change) nor by a name of its own that
resolves to this worker's address (DNS rebinding; the Host is always checked).

`response.http.headers.config` holds rules, separated by commas: `set X-Frame-Options:DENY`, `add …`; those of
`setDate …` and `addDate …` take milliseconds from now. A rule with a comma is in double quotes (KIP-577).
"""

import csv
import ipaddress
import re
import time
from collections.abc import Callable, Collection, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.rest.authentication import READING
from sparkmirror.connect.rest.responses import error_response
from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.network import authority_of
from sparkmirror.policies.java_regex import JavaPattern

ANY_HOST: Final = "*"
CONTENT_POLICY: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
EXPECTED_RULE: Final = "Expected: '[action] [header name]:[header value]'"

_PRIVATE_DOMAINS: Final = (".localhost", ".local", ".internal", ".svc", ".home.arpa", ".test")
"""Nobody can register a name below them, so nobody outside can let one resolve to this worker."""
_FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
_DEFAULT_METHODS: Final = ("GET", "POST", "HEAD")
_PREFLIGHT_AGE_S: Final = 60
_SAFE_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": CONTENT_POLICY}
_ACTIONS: Final = ("set", "add", "setDate", "addDate")
_RULE: Final = re.compile(r"\s*(\w+)\s+([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:([^:]*)")


class BrowserRequests:
    """`hosts` are the names by which this worker may be addressed, besides addresses and private names."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: JavaPattern | None) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            error = ConnectError(HTTPStatus.FORBIDDEN, refusal)
            await error_response(error)(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if not self._may_be_addressed(_name_of(f"//{host}")):
            return f"The host name {host!r} is not known to this worker; rest.allowed.hosts may list it"
        if method in READING:
            return None
        origin = headers.get("origin")
        if origin is None:
            is_foreign = headers.get("sec-fetch-site") in _FOREIGN_SITES
        else:
            is_own = authority_of(origin) == host.lower()
            is_foreign = not is_own and (self._origins is None or not self._origins.fullmatch(origin))
        if is_foreign:
            text = f"Requests that pages of {origin or 'another site'} send may not change anything"
            return f"{text}; access.control.allow.origin may list them"
        return None

    def _may_be_addressed(self, name: str) -> bool:
        if ANY_HOST in self._hosts or name in self._hosts or _is_address(name):
            return True
        return "." not in name or name.endswith(_PRIVATE_DOMAINS)


def _name_of(url: str) -> str:
    """Return the host of a URL without a final dot; empty for none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return "."  # a bracket that is not closed: no host has this name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


class CrossOrigin(CORSMiddleware):
    """Allows pages of these origins to read responses (`access.control.allow.origin` and `.methods`)."""

    def __init__(self, app: ASGIApp, origins: JavaPattern, methods: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_methods=methods or _DEFAULT_METHODS,
            allow_headers=["Content-Type"],
            max_age=_PREFLIGHT_AGE_S,
        )
        self._origins = origins

    def is_allowed_origin(self, origin: str) -> bool:
        return self._origins.fullmatch(origin)


class ResponseHeaders:
    """Changes the headers of every response of an application."""

    def __init__(self, app: ASGIApp, change: Callable[[MutableHeaders], None]) -> None:
        self._app = app
        self._change = change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_changed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                self._change(headers)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, send_changed)


def add_safe_headers(headers: MutableHeaders) -> None:
    """Forbid browsers to guess the type of a response, to run it and to frame it.

    A page that needs more than that has a policy of its own.
    """
    for name, value in _SAFE_HEADERS.items():
        headers.setdefault(name, value)


class HeaderRule(NamedTuple):
    action: str
    name: str
    value: str

    def apply(self, headers: MutableHeaders, now: float) -> None:
        is_date = self.action.endswith("Date")
        value = formatdate(now + int(self.value) / 1000, usegmt=True) if is_date else self.value
        if self.action.startswith("set"):
            headers[self.name] = value
        else:
            headers.append(self.name, value)


def apply_rules(rules: Sequence[HeaderRule]) -> Callable[[MutableHeaders], None]:
    def change(headers: MutableHeaders) -> None:
        for rule in rules:
            rule.apply(headers, time.time())

    return change


def header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Parse `response.http.headers.config`. Raises ValueError with the reason."""
    if not text.strip():
        return ()
    try:
        (rules,) = csv.reader([text], skipinitialspace=True, strict=True)
    except csv.Error:
        raise ValueError(f"Invalid format of header config '{text}'. {EXPECTED_RULE}") from None
    return tuple(map(_rule, rules))


def _rule(text: str) -> HeaderRule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"Invalid format of header config '{text}'. {EXPECTED_RULE}")
    action = next((known for known in _ACTIONS if known.lower() == match[1].lower()), None)
    value = match[3].strip()
    if action is None:
        raise ValueError(
            f"Invalid header config action: '{match[1]}'. Expected one of [{', '.join(_ACTIONS)}]"
        )
    if action.endswith("Date") and not re.fullmatch(r"-?\d+", value):
        raise ValueError(f"Invalid value '{value}' of header '{match[2]}'. Milliseconds are expected")
    return HeaderRule(action, match[2], value)
