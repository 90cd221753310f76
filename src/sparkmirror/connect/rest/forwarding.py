"""Runs the herder's blocking calls in threads, and forwards requests that only the leader can serve.

A request is forwarded over two hops at most, as in Connect. The query parameter `forward` counts them: absent
on a user's request, `true` on the first node's, `false` on the second's.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import anyio
import anyio.to_thread
import urllib3
from starlette.requests import Request
from starlette.responses import Response

from sparkmirror.client.literal_paths import LiteralPaths
from sparkmirror.connect.rest.tls import RestTls
from sparkmirror.domain.connect import ConnectError, NotLeaderError
from sparkmirror.security.tls_context import ClientContexts

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_S: Final = 90.0
_FORWARD: Final = "forward"
_CONNECT_TIMEOUT_S: Final = 5.0
_NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
_TOO_MANY_HOPS: Final = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


class Hop(NamedTuple):
    """A request that is forwarded from node to node."""

    method: str
    path: str
    """The path by which this node chose the route and checked the user's right."""
    query: tuple[tuple[str, str], ...]
    body: bytes
    authorization: str | None
    """The user's Authorization header; the leader checks it again."""
    forward: bool | None
    base_url: str = ""
    """This node's URL as in the user's request, with a slash at the end."""

    @classmethod
    def of(cls, request: Request, body: bytes) -> "Hop":
        forward = request.query_params.get(_FORWARD)
        return cls(
            request.method,
            quote(request.scope["path"]),
            tuple((key, value) for key, value in request.query_params.multi_items() if key != _FORWARD),
            body,
            request.headers.get("authorization"),
            forward.lower() == "true" if forward else None,
            str(request.base_url),
        )


class Forwarder:
    """Safe in any thread. Each request has its own connection: they are rare, and none may be sent twice."""

    def __init__(self, tls: RestTls | None) -> None:
        """Raises ConfigError for stores that can't be read."""
        self._tls = tls
        self._contexts = ClientContexts()
        self._pools()

    def _pools(self) -> LiteralPaths:
        """Open pools with the present content of the stores."""
        context = None if self._tls is None else self._contexts.context_of(self._tls.stores)
        return LiteralPaths(
            ssl_context=context,
            assert_hostname=None if context is None or context.check_hostname else False,
            retries=False,
            timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=REQUEST_TIMEOUT_S),
        )

    def forward(self, hop: Hop, leader_url: str | None) -> Response:
        """Return the leader's response. Blocks."""
        url = _next_hop(hop, leader_url)
        logger.debug("%s %s: forwarding to %s", hop.method, hop.path, url)
        headers = {"Accept": "application/json", "User-Agent": "kafka-connect", "Connection": "close"}
        if hop.body:
            headers["Content-Type"] = "application/json"
        if hop.authorization is not None:
            headers["Authorization"] = hop.authorization
        try:
            with self._pools() as pools:
                found = pools.request(hop.method, url, body=hop.body, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            logger.warning("%s %s: could not be forwarded to the leader: %s", hop.method, url, error)
            message = f"IO Error trying to forward REST request: {error}"
            raise ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, message) from error
        return _response(found, hop.base_url)


def _next_hop(hop: Hop, leader_url: str | None) -> str:
    if hop.forward is False:
        raise ConnectError(HTTPStatus.CONFLICT, _TOO_MANY_HOPS)
    if leader_url is None:
        raise ConnectError(HTTPStatus.CONFLICT, _NO_LEADER)
    forward = "true" if hop.forward is None else "false"
    return f"{leader_url.rstrip('/')}{hop.path}?{urlencode([*hop.query, (_FORWARD, forward)])}"


def _response(found: urllib3.BaseHTTPResponse, base_url: str) -> Response:
    """Return the leader's response, its Location rewritten to this node, which serves the connector too."""
    if HTTPStatus.MULTIPLE_CHOICES <= found.status < HTTPStatus.BAD_REQUEST:
        message = f"Unexpected status code when handling forwarded request: {found.status}"
        raise ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, message)
    response = Response(found.data, found.status, media_type=found.headers.get("Content-Type"))
    location = found.headers.get("Location")
    if location is not None:
        response.headers["Location"] = base_url.rstrip("/") + urlsplit(location).path
    return response


T = TypeVar("T")

_CALLS_MAX: Final = 64
LEADER_FOUND_S: Final = 10.0
"""The time to elect a leader: for a new group, brokers wait 3 s for more members. A Java worker queues
requests until it has joined."""
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
