import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.rest.browsers import ResponseHeaders, add_safe_headers
from sparkmirror.connect.rest.dispatch import CaughtErrors, Endpoint

SECRET = "a password"


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise ValueError(SECRET)


async def too_late(_request: Request) -> Response:
    raise TimeoutError


def answer(app: ASGIApp) -> list[Message]:
    """The messages that answer a GET."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        await app({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)

    asyncio.run(ask())
    return sent


def test_a_request_that_takes_too_long_is_answered_as_javas_worker_does() -> None:
    start, body = answer(Endpoint({"GET": too_late}))
    assert start["status"] == 500
    assert json.loads(body["body"]) == {"error_code": 500, "message": "Request timed out"}


def test_an_error_around_the_endpoints_tells_a_number_only(caplog: pytest.LogCaptureFixture) -> None:
    start, body = answer(ResponseHeaders(CaughtErrors(failing), add_safe_headers))
    assert start["status"] == 500
    assert (b"x-content-type-options", b"nosniff") in start["headers"]
    message = json.loads(body["body"])["message"]
    assert SECRET not in message
    assert message.split()[2].rstrip(":") in caplog.text
    assert SECRET in caplog.text
