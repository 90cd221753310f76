"""Requests whose paths arrive as they were given, whatever the names in them."""

from typing import Any
from urllib.parse import urlsplit

import urllib3


class LiteralPaths(urllib3.PoolManager):
    """Sends paths as they are; PoolManager drops `.` and `..`, which may be names of connectors."""

    def urlopen(  # type: ignore[override]  # as PoolManager's
        self, method: str, url: str, **how: Any
    ) -> urllib3.BaseHTTPResponse:
        """Raises urllib3's errors."""
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.netloc}"
        return self.connection_from_url(server).urlopen(method, url.removeprefix(server) or "/", **how)
