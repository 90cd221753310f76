"""Cross-origin requests, as Jetty's CrossOriginHandler allows them to browsers.

`access.control.allow.origin` has `*`, or Java's regular expressions for whole origins;
`access.control.allow.methods` has the methods that a preflight is told.
"""

import re
from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_DEFAULT_METHODS: Final = ("GET", "POST", "HEAD")
_ALLOWED_HEADERS: Final = "Content-Type"
_PREFLIGHT_AGE_S: Final = "60"


class CrossOrigin:
    """Adds the headers; the request, even a preflight, is answered as any other."""

    def __init__(self, app: ASGIApp, origins: re.Pattern[str], methods: Sequence[str]) -> None:
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
        if origin is None or self._origins.fullmatch(origin) is None:
            return {}
        added = {"Access-Control-Allow-Origin": origin}
        if method == "OPTIONS" and "access-control-request-method" in headers:
            added |= {
                "Access-Control-Allow-Methods": self._methods,
                "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
                "Access-Control-Max-Age": _PREFLIGHT_AGE_S,
            }
        return added
