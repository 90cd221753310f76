"""Calls of the herder, which block, from handlers, which must not."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request

from sparkmirror.connect.rest.answers import Answer
from sparkmirror.connect.rest.forwarding import REQUEST_TIMEOUT_S, Forwarder, Hop
from sparkmirror.domain.connect import ConnectError, NotLeaderError

T = TypeVar("T")

_CALLS_MAX: Final = 64
_LEADER_FOUND_S: Final = 10.0
"""So long a leader may be chosen, as when the first node of a group has just started: brokers wait 3 s then
whether more of them come. A Java worker takes what it is asked meanwhile, and does it when it has joined."""
_LOOK_AGAIN_S: Final = 0.1
_LEADER_GONE: Final = "The leader was lost meanwhile; whether the request was met is not known"


class HerderCalls:
    """At most 64 calls at once, each in a thread; others wait, within the time that a request has."""

    def __init__(self, forwarder: Forwarder, leader_url: Callable[[], str | None]) -> None:
        self._forwarder = forwarder
        self._leader_url = leader_url
        self._limiter = anyio.CapacityLimiter(_CALLS_MAX)

    async def run(self, action: Callable[[], T]) -> T:
        """What the action answers, here. Raises TimeoutError."""
        with anyio.fail_after(REQUEST_TIMEOUT_S):
            return await anyio.to_thread.run_sync(action, abandon_on_cancel=True, limiter=self._limiter)

    async def run_on_leader(self, request: Request, body: bytes, action: Callable[[], Answer]) -> Answer:
        """What the action answers; the leader's answer to the same request where only that can."""
        hop = Hop.of(request, body)
        deadline = time.monotonic() + _LEADER_FOUND_S
        while True:
            try:
                return await self.run(action)
            except NotLeaderError as error:
                leader_url = error.leader_url
            if leader_url is not None or time.monotonic() > deadline:
                return await self._sent_on(hop, leader_url)
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _sent_on(self, hop: Hop, leader_url: str | None) -> Answer:
        """Not to wait for the answer of who leads no more: frozen, or cut off, it may be long in coming."""
        sending = asyncio.ensure_future(self.run(partial(self._forwarder.sent_on, hop, leader_url)))
        try:
            while not sending.done() and self._leader_url() == leader_url:
                await asyncio.wait({sending}, timeout=_LOOK_AGAIN_S)
        finally:
            sending.cancel()
        if not sending.done():
            raise ConnectError(HTTPStatus.CONFLICT, _LEADER_GONE)
        return sending.result()
