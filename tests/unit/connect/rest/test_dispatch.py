import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from sparkmirror.connect.rest.browsers import ResponseHeaders, add_safe_headers
from sparkmirror.connect.rest.dispatch import CaughtErrors

SECRET = "a password"


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise ValueError(SECRET)


def test_an_error_around_the_endpoints_tells_a_number_only(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(ResponseHeaders(CaughtErrors(failing), add_safe_headers)(scope, receive, send))
    start, body = sent
    assert start["status"] == 500
    assert (b"x-content-type-options", b"nosniff") in start["headers"]
    message = json.loads(body["body"])["message"]
    assert SECRET not in message
    assert message.split()[2].rstrip(":") in caplog.text
    assert SECRET in caplog.text
