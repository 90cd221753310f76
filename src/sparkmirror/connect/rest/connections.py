"""Ends the connections of clients that are too slow; uvicorn's own limits leave them their places for ever.

uvicorn limits how many connections a listener has, and how long one stays idle behind a response. It has no
limit for a client that sends no request or half of one, or that does not receive its response. A stream has
no end: it lasts as long as its client takes what is sent.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.rest.authentication import PEER_NAME


class Limits(NamedTuple):
    """The seconds that a client may take, and the number of a listener's connections; more get a 503."""

    kept_idle_s: int = 30
    """The time between a response and the next request."""
    request_complete_s: float = 30.0
    """The time for the head of a request, beyond the idle time, and the time for its body."""
    response_received_s: float = 120.0
    """The time in which a client receives a response, or a part of a stream."""
    connections_max: int = 1000


class HasTransport(Protocol):
    """A connection as the server lists it."""

    transport: asyncio.Transport


@dataclass(slots=True, eq=False)
class _Request:
    """A request under way, and until when its client must send the body and receive what is sent."""

    body_until: float | None
    receive_until: float | None = None
    send_until: float | None = None
    is_stream: bool = False

    @property
    def until(self) -> float:
        """Return when the client's time is over; infinite while only the application is waited for."""
        return min((at for at in (self.receive_until, self.send_until) if at is not None), default=inf)


@dataclass(slots=True)
class Connections:
    """An application around another one, which knows what each connection of its listener waits for."""

    app: ASGIApp
    limits: Limits
    has_certificates: bool = False
    """Whether clients may have certificates."""
    open: Collection[HasTransport] = ()
    """The listener's connections, which the server keeps."""
    _requests: dict[object, _Request] = field(default_factory=dict)
    _idle_until: dict[asyncio.Transport, float] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        request = _Request(loop.time() + self.limits.request_complete_s)

        async def received() -> Message:
            request.receive_until = request.body_until
            message = await receive()
            request.receive_until = None
            if not message.get("more_body"):
                request.body_until = None  # behind its body the client need not send anything
            return message

        async def sent(message: Message) -> None:
            request.send_until = loop.time() + self.limits.response_received_s
            request.is_stream |= bool(message.get("more_body"))
            await send(message)
            request.send_until = None

        self._requests[scope["client"]] = request
        if self.has_certificates:
            scope = {
                **scope,
                "state": {**scope.get("state", {}), PEER_NAME: self._peer_name(scope["client"])},
            }
        try:
            await self.app(scope, received, sent)
        finally:
            if self._requests.get(scope["client"]) is request:  # the next one may have begun
                del self._requests[scope["client"]]

    def end_slow(self) -> None:
        """Disconnect the clients whose time is over. Called about once a second."""
        now = asyncio.get_running_loop().time()
        idle_until = now + self.limits.kept_idle_s + self.limits.request_complete_s
        idle: dict[asyncio.Transport, float] = {}
        for transport, request in self._under_way():
            if request is None:
                until = idle[transport] = self._idle_until.get(transport, idle_until)
            else:
                until = request.until
            if until < now:
                transport.abort()
        self._idle_until = idle

    def end_idle(self) -> None:
        """Disconnect clients without a request, and those of streams, which would not end by themselves."""
        for transport, request in self._under_way():
            if request is None or request.is_stream:
                transport.abort()

    def end_all(self) -> None:
        for connection in list(self.open):
            connection.transport.abort()

    def _under_way(self) -> Iterator[tuple[asyncio.Transport, _Request | None]]:
        for connection in list(self.open):
            yield connection.transport, self._requests.get(_client(connection.transport))

    def _peer_name(self, client: object) -> str | None:
        """The distinguished name of the client's certificate as Java writes it: `CN=ops,O=Example`."""
        from cryptography import x509  # noqa: PLC0415 - only where clients have certificates

        transports = (each.transport for each in self.open if _client(each.transport) == client)
        of_client = next(transports, None)
        peer = None if of_client is None else of_client.get_extra_info("ssl_object")
        certificate = None if peer is None else peer.getpeercert(binary_form=True)
        if certificate is None:
            return None
        return x509.load_der_x509_certificate(certificate).subject.rfc4514_string()


def _client(transport: asyncio.Transport) -> object:
    """The address by which ASGI names a client."""
    peer = transport.get_extra_info("peername")
    return None if peer is None else (str(peer[0]), int(peer[1]))
