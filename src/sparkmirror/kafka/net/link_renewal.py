"""Logs a broker link in again before its session ends, on the same connection (KIP-368).

While that lasts, a broker takes nothing but the login: other requests wait for two or three round trips.
"""

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.login import LOGIN_ID, Ask, Steps, renewal_s

_CORRELATION_ID: Final = struct.Struct(">i")

Buffers = Sequence[bytes | memoryview]


class LinkRenewal:
    """Renews the login of one open connection, on the loop's thread; `fail` ends the connection."""

    def __init__(
        self,
        connection: Connection,
        loop: asyncio.AbstractEventLoop,
        transmit: Callable[[Buffers], None],
        fail: Callable[[SparkmirrorError], None],
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._transmit = transmit
        self._fail = fail
        self._steps: Steps | None = None
        self._asked: Ask | None = None
        self._held: list[Buffers] = []
        self._timer: asyncio.TimerHandle | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._has_ended = False
        self._plan(connection.session_s)

    def end(self) -> None:
        """The connection is given up."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._preparing is not None:
            self._preparing.cancel()

    def holds(self, buffers: Buffers) -> bool:
        """Whether this frame is kept back, to be sent after the login."""
        if self._steps is None:
            return False
        self._held.append(list(buffers))
        return True

    def takes(self, frame: memoryview) -> bool:
        """Whether this frame belongs to the login."""
        if self._asked is None or _CORRELATION_ID.unpack_from(frame)[0] != LOGIN_ID:
            return False
        asked, self._asked = self._asked, None
        try:
            self._advance(self._connection.decode_login(asked, frame))
        except SparkmirrorError as error:
            self._loop.call_soon(self._give_up, error)
        return True

    def _plan(self, session_s: float | None) -> None:
        if session_s is not None:
            self._timer = self._loop.call_later(renewal_s(session_s), self._begin)

    def _begin(self) -> None:
        self._preparing = self._loop.create_task(self._prepare())

    async def _prepare(self) -> None:
        """A token may have to be fetched, which blocks."""
        login = self._connection.login
        assert login is not None
        try:
            steps = await self._loop.run_in_executor(None, login.steps, self._connection.versions)
        except SparkmirrorError as error:
            self._give_up(error)
            return
        if not self._has_ended:
            self._steps = steps
            self._advance(None)

    def _advance(self, answer: Any) -> None:
        assert self._steps is not None
        try:
            self._asked = self._steps.send(answer)
        except StopIteration as end:
            self._steps = None
            held, self._held = self._held, []
            for buffers in held:
                self._transmit(buffers)
            self._plan(end.value)
            return
        self._transmit([self._connection.encode_login(self._asked)])

    def _give_up(self, error: SparkmirrorError) -> None:
        if not self._has_ended:
            self._fail(error)
