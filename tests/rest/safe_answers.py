"""Judges an answer of the REST API, whatever was asked."""

import http.client
import json
from contextlib import closing
from typing import Final, NoReturn
from urllib.parse import urlsplit

from tests.support.rest_requests import Answer, Request

ANSWERED_S: Final = 30.0


def require_safe(answer: Answer, request: Request, secret: str) -> None:
    """Require no answer of 500, Connect's shape for errors, headers that browsers need, and no secret."""
    said = f"{request}: {answer}"
    assert 200 <= answer.status < 500, said
    assert secret not in f"{answer.headers}{answer.body.decode('utf-8', 'replace')}", said
    assert answer.headers.get("X-Content-Type-Options") == "nosniff", said
    assert "frame-ancestors 'none'" in answer.headers.get("Content-Security-Policy", ""), said
    has_body = request.method != "HEAD" and answer.status != 204
    if has_body and answer.headers.get("Content-Type") == "application/json":
        content = json.loads(answer.body, parse_constant=_refuse)
        if answer.status >= 400:
            assert set(content) == {"error_code", "message"}, said
            assert content["error_code"] == answer.status, said
    elif has_body and answer.status >= 400:
        assert request.path.startswith("/ui"), said  # pages have errors for people


def _refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


def ask_any(url: str, request: Request) -> Answer:
    """A stream has no end: only its beginning is read."""
    at = urlsplit(url)
    with closing(http.client.HTTPConnection(str(at.hostname), at.port, timeout=ANSWERED_S)) as connection:
        connection.request(request.method, request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        headers = {name.title(): value for name, value in answer.getheaders()}
        is_stream = headers.get("Content-Type", "").startswith("text/event-stream")
        return Answer(answer.status, headers, b"" if is_stream else answer.read())
