"""One client's connection: HTTP by uvicorn, plus patience that ends.

A request has to be complete in time, and its answer taken in time. Otherwise the connection is dropped, so
clients that are slow, half-open or gone hold nothing for long.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from sparkmirror.connect.rest.answers import json_bytes

REQUEST_COMPLETE_S: Final = 30.0
"""From the connection's begin, or from the end of an idle time behind an answer."""
ANSWER_TAKEN_S: Final = 120.0
"""Longer than any request takes."""
KEPT_IDLE_S: Final = 30


class PatientProtocol(H11Protocol):
    """What uvicorn makes for each connection."""

    request_complete_s = REQUEST_COMPLETE_S
    answer_taken_s = ANSWER_TAKEN_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._drop_after(self.request_complete_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and cycle is not self._answering and not cycle.more_body:
            self._answering = cycle
            if not cycle.response_complete:
                self._drop_after(self.answer_taken_s)

    def on_response_complete(self) -> None:
        # Even a closed transport lives on until its last bytes are taken.
        self._drop_after(self.timeout_keep_alive + self.request_complete_s)
        super().on_response_complete()

    def shutdown(self) -> None:
        """The server stops: whoever waits for nothing is dropped. TLS would wait 30 s for a farewell."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """To what is no HTTP; an error as Connect has them."""
        body = json_bytes({"error_code": HTTPStatus.BAD_REQUEST.value, "message": msg})
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        events = [h11.Response(status_code=HTTPStatus.BAD_REQUEST, headers=headers), h11.Data(data=body)]
        for event in (*events, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _drop_after(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
