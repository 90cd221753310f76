"""Adds timeouts to uvicorn's HTTP connections: slow, half-open and vanished clients are disconnected.

A request must arrive completely in time, and its response must be received in time. A stream has no end: it
lasts as long as its client takes what is sent. uvicorn has options for
idle connections and for the shutdown only, so this extends its protocol class.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from sparkmirror.connect.rest.authentication import PEER_NAME
from sparkmirror.connect.rest.response_headers import SAFE_HEADERS
from sparkmirror.connect.rest.responses import error_response, json_bytes
from sparkmirror.domain.connect import ConnectError

REQUEST_COMPLETE_S: Final = 30.0
"""From the start of the connection, or from the end of the idle time after a response."""
RESPONSE_RECEIVED_S: Final = 120.0
"""Longer than any request takes."""
KEPT_IDLE_S: Final = 30
CONNECTIONS_MAX: Final = 1000
"""Per listener; more get a 503."""
_PIECE_BYTES: Final = 4096
"""Taken at a time: a chunk of one byte costs as much as one of many, and has 6 bytes."""


class TimeoutProtocol(H11Protocol):
    """uvicorn creates one for each connection."""

    request_complete_s = REQUEST_COMPLETE_S
    response_received_s = RESPONSE_RECEIVED_S
    connections_max = CONNECTIONS_MAX

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._served: ASGIApp = self.app
        self.app = self._limited  # uvicorn's own limit responds with a text, without headers
        self._deadline: asyncio.TimerHandle | None = None
        self._responding: RequestResponseCycle | None = None
        self._unread = bytearray()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        peer = transport.get_extra_info("ssl_object")
        certificate = None if peer is None else peer.getpeercert(binary_form=True)
        if certificate is not None:
            self.app_state = {**self.app_state, PEER_NAME: _subject(certificate)}
        self._drop_after(self.request_complete_s)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_full = max(len(self.connections), len(self.tasks)) >= self.connections_max
        await (_too_many if is_full else self._served)(scope, receive, send)

    def data_received(self, data: bytes) -> None:
        """Take it in pieces, between which others are served."""
        is_taking = bool(self._unread)
        self._unread += data
        if is_taking:
            self.transport.pause_reading()
        else:
            self._take_piece()

    def _take_piece(self) -> None:
        if self.transport.is_closing():
            return
        piece = bytes(self._unread[:_PIECE_BYTES])
        super().data_received(piece)
        del self._unread[:_PIECE_BYTES]
        if self._unread:
            self.transport.pause_reading()
            self.loop.call_soon(self._take_piece)
        elif not self.flow.read_paused:
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and cycle is not self._responding and not cycle.more_body:
            self._responding = cycle
            if not cycle.response_complete:
                self._drop_after(self.response_received_s)

    def _expire(self) -> None:
        if self._is_stream() and self.transport.get_write_buffer_size() == 0:
            self._drop_after(self.response_received_s)
        else:
            self.transport.abort()

    def _is_stream(self) -> bool:
        """A response that was begun and not ended is one; all others are sent as a whole."""
        cycle = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def on_response_complete(self) -> None:
        # Even a closed transport stays open until the client has received its last bytes.
        self._drop_after(self.timeout_keep_alive + self.request_complete_s)
        super().on_response_complete()

    def shutdown(self) -> None:
        """Close at once without an open request: TLS would wait 30 s for the client's close_notify.

        A stream would not end by itself.
        """
        is_idle = self.cycle is None or self.cycle.response_complete or self._is_stream()
        if is_idle and self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Respond with an error of Connect's shape to anything but HTTP."""
        body = json_bytes({"error_code": HTTPStatus.BAD_REQUEST.value, "message": msg})
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
            *SAFE_HEADERS.items(),
        ]
        events = [h11.Response(status_code=HTTPStatus.BAD_REQUEST, headers=headers), h11.Data(data=body)]
        for event in (*events, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _drop_after(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(ConnectError(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections"))
    response.headers.update({"Connection": "close", **SAFE_HEADERS})
    await response(scope, receive, send)


def _subject(certificate: bytes) -> str:
    """The distinguished name as Java writes it: `CN=ops,O=Example`."""
    from cryptography import x509  # noqa: PLC0415 - only where clients have certificates

    return x509.load_der_x509_certificate(certificate).subject.rfc4514_string()
