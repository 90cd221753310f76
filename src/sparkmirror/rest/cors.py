"""Cross-origin requests, as Jetty's CrossOriginFilter allows them to browsers.

`access.control.allow.origin` names origins, with `*` for any text in them; `access.control.allow.methods` the
methods of requests that need a preflight.
"""

import re
from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_DEFAULT_METHODS: Final = ("GET", "POST", "HEAD")
_HEADERS: Final = "X-Requested-With,Content-Type,Accept,Origin"
_PREFLIGHT_AGE_S: Final = "1800"


class CrossOrigin:
    """Adds the headers; the request is answered as any other."""

    def __init__(self, app: ASGIApp, origins: Sequence[str], methods: Sequence[str]) -> None:
        self._app = app
        self._origins = [re.compile(".*".join(map(re.escape, origin.split("*")))) for origin in origins]
        self._methods = list(methods) or list(_DEFAULT_METHODS)

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
        if origin is None or not any(allowed.fullmatch(origin) for allowed in self._origins):
            return {}
        added = {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"}
        asked = headers.get("access-control-request-method")
        if method == "OPTIONS" and asked is not None and asked in self._methods:
            added |= {
                "Access-Control-Max-Age": _PREFLIGHT_AGE_S,
                "Access-Control-Allow-Methods": ",".join(self._methods),
                "Access-Control-Allow-Headers": _HEADERS,
            }
        return added
