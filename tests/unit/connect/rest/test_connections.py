"""A listener's connections wait for a time; their transports only note that they are aborted."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.rest.connections import Connections, Limits

CLIENT = ("127.0.0.1", 4711)
SCOPE = {"type": "http", "client": CLIENT}


class Transport:
    """The end of a client that sends and takes only what a test lets it."""

    def __init__(self) -> None:
        self.is_aborted = False
        self.body = asyncio.Event()
        self.taken = asyncio.Event()

    def get_extra_info(self, name: str) -> object:
        return CLIENT if name == "peername" else None

    def abort(self) -> None:
        self.is_aborted = True

    async def receive(self) -> Message:
        await self.body.wait()
        self.body.clear()
        return {"type": "http.request"}

    async def send(self, _message: Message) -> None:
        await self.taken.wait()


async def reading(_scope: Scope, receive: Receive, _send: Send) -> None:
    await receive()
    await asyncio.Event().wait()


async def streaming(_scope: Scope, receive: Receive, send: Send) -> None:
    """Watches for the client's end while it sends, as Starlette does."""

    async def watch() -> None:
        while True:
            await receive()

    watching = asyncio.create_task(watch())
    while not watching.done():
        await send({"type": "http.response.body", "more_body": True})
        await asyncio.sleep(0)


async def waiting(_scope: Scope, _receive: Receive, _send: Send) -> None:
    await asyncio.Event().wait()


def aborted(app: ASGIApp | None, happens: Callable[[Transport], None], **limits: Any) -> bool:
    """Whether a client is disconnected when its time is over."""

    async def run() -> bool:
        transport: Any = Transport()
        connections = Connections(
            app or waiting, Limits(**limits), open=[SimpleNamespace(transport=transport)]
        )
        happens(transport)
        request = None
        if app is not None:
            request = asyncio.create_task(connections(SCOPE, transport.receive, transport.send))
        for _ in range(9):
            await asyncio.sleep(0)
            connections.end_slow()
        if request is not None:
            request.cancel()
        return bool(transport.is_aborted)

    return asyncio.run(run())


def nothing(_transport: Transport) -> None:
    pass


def sends_its_body(transport: Transport) -> None:
    transport.body.set()


def takes_what_is_sent(transport: Transport) -> None:
    transport.body.set()
    transport.taken.set()


@pytest.mark.parametrize(
    ("app", "happens", "limits", "is_aborted"),
    [
        (None, nothing, {"kept_idle_s": 0, "request_complete_s": 0.0}, True),
        (None, nothing, {"kept_idle_s": 0}, False),
        (reading, nothing, {"request_complete_s": 0.0}, True),
        (reading, sends_its_body, {"request_complete_s": 0.0}, False),
        (waiting, nothing, {"request_complete_s": 0.0, "response_received_s": 0.0}, False),
        (streaming, sends_its_body, {"response_received_s": 0.0}, True),
        (streaming, takes_what_is_sent, {"request_complete_s": 0.0, "response_received_s": 0.0}, False),
    ],
)
def test_a_client_is_disconnected_when_it_is_waited_for_too_long(
    app: ASGIApp | None, happens: Callable[[Transport], None], limits: dict[str, Any], is_aborted: bool
) -> None:
    assert aborted(app, happens, **limits) is is_aborted
