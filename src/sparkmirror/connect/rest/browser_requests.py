"""Refuses requests that a web page of another site makes a browser send.

The API asks nobody who he is by default, so a page that a user happens to open must not reach it: neither by
a request to another site (its Origin is checked wherever something may change) nor by a name of its own that
it lets resolve to this worker's address (DNS rebinding; the Host is checked always).
"""

import ipaddress
from collections.abc import Collection
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.rest.authentication import READING
from sparkmirror.connect.rest.responses import error_response
from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.network import authority_of
from sparkmirror.policies.java_regex import JavaPattern

ANY_HOST: Final = "*"
_PRIVATE_DOMAINS: Final = (".localhost", ".local", ".internal", ".svc", ".home.arpa", ".test")
"""Nobody can register a name below them, so nobody outside can let one resolve to this worker."""

_FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})


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
    """The host of a URL, without a final dot; empty if there is none."""
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
