"""Runs the herder's blocking calls in threads, and forwards requests that only the leader can serve."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from sparkmirror.connect.rest.forwarding import REQUEST_TIMEOUT_S, Forwarder, Hop
from sparkmirror.domain.connect import ConnectError, NotLeaderError

T = TypeVar("T")

_CALLS_MAX: Final = 64
LEADER_FOUND_S: Final = 10.0
"""Time for the group to elect a leader, as when its first node has just started: brokers then wait 3 s for
more members. A Java worker queues requests meanwhile and runs them when it has joined."""
_LEADER_POLL_S: Final = 0.1
_LEADER_GONE: Final = "The leader was lost meanwhile; whether the request was met is not known"


class HerderCalls:
    """Runs at most 64 calls at once, each in a thread; others wait, within the request timeout."""

    def __init__(
        self,
        forwarder: Forwarder,
        leader_url: Callable[[], str | None],
        leader_found_s: float = LEADER_FOUND_S,
    ) -> None:
        self._forwarder = forwarder
        self._leader_url = leader_url
        self._leader_found_s = leader_found_s
        self._limiter = anyio.CapacityLimiter(_CALLS_MAX)

    async def run(self, action: Callable[[], T]) -> T:
        """Return the action's result. Raises TimeoutError."""
        with anyio.fail_after(REQUEST_TIMEOUT_S):
            return await anyio.to_thread.run_sync(action, abandon_on_cancel=True, limiter=self._limiter)

    async def run_on_leader(self, request: Request, body: bytes, action: Callable[[], Response]) -> Response:
        """Return the action's response, or the leader's response to the forwarded request."""
        hop = Hop.of(request, body)
        deadline = time.monotonic() + self._leader_found_s
        while True:
            try:
                return await self.run(action)
            except NotLeaderError as error:
                leader_url = error.leader_url
            if leader_url is not None or time.monotonic() > deadline:
                return await self._forward(hop, leader_url)
            await asyncio.sleep(_LEADER_POLL_S)

    async def _forward(self, hop: Hop, leader_url: str | None) -> Response:
        """Stop waiting when the leader changes: a frozen or cut-off former one may not respond for long."""
        sending = asyncio.ensure_future(self.run(partial(self._forwarder.forward, hop, leader_url)))
        try:
            while not sending.done() and self._leader_url() == leader_url:
                await asyncio.wait({sending}, timeout=_LEADER_POLL_S)
        finally:
            sending.cancel()
        if not sending.done():
            raise ConnectError(HTTPStatus.CONFLICT, _LEADER_GONE)
        return sending.result()
