"""Calls of the herder, which block, from handlers, which must not."""

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request

from sparkmirror.rest.answers import Answer
from sparkmirror.rest.forwarding import Forwarder, Hop

T = TypeVar("T")

_CALLS_MAX: Final = 64


class HerderCalls:
    """At most 64 calls at once, each in a thread; others wait, within the time that a request has."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._limiter = anyio.CapacityLimiter(_CALLS_MAX)

    async def run(self, action: Callable[[], T]) -> T:
        """What the action answers, here."""
        return await anyio.to_thread.run_sync(action, abandon_on_cancel=True, limiter=self._limiter)

    async def run_on_leader(self, request: Request, body: bytes, action: Callable[[], Answer]) -> Answer:
        """What the action answers; the leader's answer to the same request where only that can."""
        hop = Hop.of(request, body)
        return await self.run(lambda: self._forwarder.done_or_sent_on(hop, action))
