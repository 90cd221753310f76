"""Adds the headers that an operator configures to responses (KIP-577), and those of cross-origin requests.

`response.http.headers.config` holds rules of Jetty's HeaderFilter, separated by commas: `set
X-Frame-Options:DENY`, `add …`; `setDate …` and `addDate …` take milliseconds from now. A rule that contains a
comma is put in double quotes.

`access.control.allow.origin` is `*`, or Java's regular expressions for whole origins;
`access.control.allow.methods` lists the methods that a preflight response names.
"""

import re
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from enum import Enum
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.policies.java_regex import JavaPattern

_DEFAULT_METHODS: Final = ("GET", "POST", "HEAD")
_ALLOWED_HEADERS: Final = "Content-Type"
_PREFLIGHT_AGE_S: Final = "60"
CONTENT_POLICY: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
SAFE_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": CONTENT_POLICY}
_RULE: Final = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>[^,"]*))\s*(?:,|$)')


class Action(Enum):
    SET = "set"
    ADD = "add"
    SET_DATE = "setDate"
    ADD_DATE = "addDate"


class HeaderRule(NamedTuple):
    action: Action
    name: str
    value: str

    def apply(self, headers: MutableHeaders, now: float) -> None:
        if self.action in (Action.SET_DATE, Action.ADD_DATE):
            value = formatdate(now + int(self.value) / 1000, usegmt=True)
        else:
            value = self.value
        if self.action in (Action.SET, Action.SET_DATE):
            headers[self.name] = value
        else:
            headers.append(self.name, value)


def header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Raises ValueError with Connect's reason."""
    return tuple(_rule(rule) for rule in _split(text)) if text.strip() else ()


def _split(text: str) -> list[str]:
    rules, at = [], 0
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(f"Invalid format of header config '{text[at:]}'. {EXPECTED}")
        rules.append(match["quoted"] if match["quoted"] is not None else match["plain"])
        at = match.end()
    return rules


EXPECTED: Final = "Expected: '[action] [header name]:[header value]'"


def _rule(text: str) -> HeaderRule:
    action, space, header = text.strip().partition(" ")
    if not space:
        raise ValueError(f"Invalid format of header config '{text}'. {EXPECTED}")
    found = next((known for known in Action if known.value.lower() == action.lower()), None)
    if found is None:
        known = ", ".join(action.value for action in Action)
        raise ValueError(f"Invalid header config action: '{action}'. Expected one of [{known}]")
    parts = header.strip().split(":")
    if len(parts) != 2:
        pair = "Invalid format of header name and header value pair"
        raise ValueError(f"{pair} '{header.strip()}'. Expected: '[header name]:[header value]'")
    name, value = parts[0].strip(), parts[1].strip()
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise ValueError(f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace")
    if found in (Action.SET_DATE, Action.ADD_DATE) and not re.fullmatch(r"-?\d+", value):
        raise ValueError(f"Invalid value '{value}' of header '{name}'. Milliseconds are expected")
    return HeaderRule(found, name, value)


class ResponseHeaders:
    """Applies the rules to every response of an application."""

    def __init__(
        self, app: ASGIApp, rules: tuple[HeaderRule, ...], now: Callable[[], float] = time.time
    ) -> None:
        self._app = app
        self._rules = rules
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                for rule in self._rules:
                    rule.apply(headers, self._now())
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, send_with_headers)


class SafeContent:
    """Lets a browser take a response for what it is declared to be, and for nothing that runs or is framed.

    A page that needs more than that says so in a policy of its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, send_with_headers)


class CrossOrigin:
    """Adds the headers as Jetty's CrossOriginHandler does; a preflight is handled like any other request."""

    def __init__(self, app: ASGIApp, origins: JavaPattern, methods: Sequence[str]) -> None:
        self._app = app
        self._origins = origins
        self._methods = ",".join(methods or _DEFAULT_METHODS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        added = self._added(scope["method"], Headers(scope=scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.add_vary_header("Origin")
                headers.update(added)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _added(self, method: str, headers: Headers) -> dict[str, str]:
        origin = headers.get("origin")
        if origin is None or not self._origins.fullmatch(origin):
            return {}
        added = {"Access-Control-Allow-Origin": origin}
        if method == "OPTIONS" and "access-control-request-method" in headers:
            added |= {
                "Access-Control-Allow-Methods": self._methods,
                "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
                "Access-Control-Max-Age": _PREFLIGHT_AGE_S,
            }
        return added
