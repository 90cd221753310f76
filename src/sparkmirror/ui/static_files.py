"""Serves the files that pages load: they come with this package, so that nothing is loaded from elsewhere."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

TYPES: Final = {
    "htmx.min.js": "text/javascript",
    "hx-sse.min.js": "text/javascript",
    "uPlot.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "ui.js": "text/javascript",
    "ui.css": "text/css",
    "icon.svg": "image/svg+xml",
}
"""Every file that is served, and nothing else is."""


class _File(NamedTuple):
    content: bytes
    etag: str


def static_response(request: Request, name: str) -> Response:
    if name not in TYPES:
        return Response("There is no such file", 404, media_type="text/plain")
    file = _read(name)
    # Asked for again each time, but sent only if another version was started since.
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=TYPES[name], headers=headers)


@cache
def _read(name: str) -> _File:
    content = (files("sparkmirror.ui") / "static" / name).read_bytes()
    return _File(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
