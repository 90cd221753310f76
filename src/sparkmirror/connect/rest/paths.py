"""Converts request paths to a canonical form for the routes, with percent-encoded segments.

Encoded, a connector's name may contain a slash. As in JAX-RS a slash at the end is ignored, and so is the
part of a segment after a semicolon. Dots are no directories: `..` is a name like any other.
"""

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.rest.responses import bad_request, error_response
from sparkmirror.domain.connect import ConnectError

_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9._-]+)+")
"""Matches paths that are canonical already, as nearly all are: polling must cost little."""
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ABSOLUTE: Final = re.compile(r"[a-z]+://[^/?]*", re.IGNORECASE)


class CanonicalPaths:
    """Passes requests on with the canonical path; refuses ambiguous paths."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            path = canonical_path(scope["raw_path"].decode("ascii"))
        except ConnectError as error:
            await error_response(error)(scope, receive, send)
        else:
            await self._app({**scope, "path": path}, receive, send)


def canonical_path(raw: str) -> str:
    """Raises ConnectError with the message of Java's server."""
    if _PLAIN.fullmatch(raw):
        return raw
    absolute = _ABSOLUTE.match(raw)
    if absolute is not None:
        # Proxies may send the whole URL.
        raw = raw[absolute.end() :]
    if _BROKEN_ESCAPE.search(raw):
        raise bad_request("Bad Request")
    segments = raw.removeprefix("/").removesuffix("/").split("/")
    if len(segments) > 1 and "" in segments:
        raise bad_request("Ambiguous URI empty segment")
    return "/" + "/".join(encoded(_segment(segment)) for segment in segments)


def _segment(raw: str) -> str:
    try:
        text = unquote_to_bytes(raw.partition(";")[0]).decode("utf-8")
    except UnicodeDecodeError:
        raise bad_request("Bad UTF-8 encoding") from None
    if _CONTROL.search(text):
        raise bad_request("Suspicious Path Character")
    return text


def encoded(name: str) -> str:
    """Encode a name as one segment of a path."""
    return quote(name, safe="!$&'()*+,=:@", errors="replace")


def parameter(request: Request, name: str) -> str:
    """Return the decoded value of a parameter of the route."""
    return unquote_to_bytes(request.path_params[name]).decode("utf-8")


def flag(request: Request, name: str, *, default: bool) -> bool:
    """Parse a query parameter as JAX-RS does a Boolean: all but `true` is false; absent, the default."""
    text = first(request, name)
    return default if not text else text.lower() == "true"


def first(request: Request, name: str) -> str | None:
    """Return a query parameter; of several the first."""
    return next(iter(request.query_params.getlist(name)), None)
