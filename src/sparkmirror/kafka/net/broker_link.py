"""Keeps a connection to one broker open on a loop: opens it in the background, reopens it with back-off.

Frames are sent and received on the loop's thread; only opening, which may block, runs in another.
"""

import asyncio
import random
import threading
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple, Protocol

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import (
    AuthenticationError,
    ClusterChangedError,
    DisconnectedError,
    SparkmirrorError,
)
from sparkmirror.kafka.net.channel import Channel
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.link_renewal import LinkRenewal
from sparkmirror.kafka.net.metadata import Broker

_LOGIN_BACKOFF = Backoff(1.0, 30.0)
"""The back-off for errors that only a user can correct.

A broker counts failed logins, and may lock the account.
"""


_LENGTH_BYTES = 4


class Traffic(NamedTuple):
    """Bytes of some links, how many of these are connected now, and for how long they were throttled."""

    bytes_in: int
    bytes_out: int
    connections: int
    throttled_s: float


def traffic(links: Iterable["BrokerLink"]) -> Traffic:
    every = list(links)
    return Traffic(
        sum(link.bytes_in for link in every),
        sum(link.bytes_out for link in every),
        sum(link.is_ready for link in every),
        sum(link.throttled_s for link in every),
    )


class LinkOwner(Protocol):
    """Receives a link's frames and changes of state. All calls come on the loop's thread."""

    def link_ready(self, link: "BrokerLink") -> None:
        """The connection is open; `link.version_of` may be called."""

    def link_received(self, link: "BrokerLink", frame: memoryview) -> None: ...

    def throttle_ended(self, link: "BrokerLink") -> None:
        """The broker reads requests again; see `BrokerLink.throttle`."""

    def link_lost(self, link: "BrokerLink", error: SparkmirrorError) -> None:
        """The connection broke or failed to open, and is retried. Pending requests get no response."""


class BrokerLink:
    """States: connecting, ready, or waiting to connect again."""

    def __init__(
        self, broker: Broker, settings: ConnectionSettings, loop: asyncio.AbstractEventLoop, owner: LinkOwner
    ) -> None:
        self.broker = broker
        self._settings = settings
        self._loop = loop
        self._owner = owner
        self._backoff = Backoff(settings.reconnect_backoff_s, settings.reconnect_backoff_max_s)
        self._failures = 0
        self._connection: Connection | None = None
        self._channel: Channel | None = None
        self._writing = False
        self._closed = False
        self._opening: Connection | None = None
        self._renewal: LinkRenewal | None = None
        self._handing_over = threading.Lock()
        self.bytes_in = self.bytes_out = 0
        """The bytes of all its connections, without what TLS adds."""
        self._throttle_s = 0.0
        self._throttled_until = -inf
        self._throttle: asyncio.TimerHandle | None = None

    @property
    def is_ready(self) -> bool:
        return self._channel is not None

    @property
    def can_send(self) -> bool:
        """Tell whether the broker reads what is sent: it is connected, and not throttled."""
        return self.is_ready and self._throttle is None

    def throttle(self, throttle_s: float) -> None:
        """Note the throttle time of a response: the broker reads nothing until it is over (KIP-219).

        `throttle_ended` follows, unless the connection breaks before.
        """
        if throttle_s <= 0 or not self.is_ready:
            return
        now = self._loop.time()
        until = max(self._throttled_until, now + throttle_s)
        self._throttle_s += until - max(self._throttled_until, now)
        self._throttled_until = until
        if self._throttle is not None:
            self._throttle.cancel()
        self._throttle = self._loop.call_at(self._throttled_until, self._end_throttle)

    @property
    def throttled_s(self) -> float:
        """Return for how long it has been throttled, over all its connections."""
        return self._throttle_s - max(0.0, self._throttled_until - self._loop.time())

    def waiting_since(self, sent_at: float) -> float:
        """Return from when on a response is awaited: under a throttle the request has not been read yet."""
        return max(sent_at, self._throttled_until)

    def _end_throttle(self) -> None:
        self._throttle = None
        self._owner.throttle_ended(self)

    def start(self) -> None:
        self._loop.create_task(self._connect())

    def close(self) -> None:
        """Close for good; the owner is not called."""
        with self._handing_over:
            self._closed = True
            if self._opening is not None:
                self._opening.close()
        self._release()

    def version_of(self, api_key: int, name: str, low: int, high: int) -> int:
        assert self._connection is not None
        return self._connection.version_of(api_key, name, low, high)

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Queue one frame. A broken connection is reported through the owner, on a later turn of the loop."""
        assert self._channel is not None
        if self._renewal is not None and self._renewal.holds(buffers):
            return
        self._transmit(buffers)

    def _transmit(self, buffers: Sequence[bytes | memoryview]) -> None:
        assert self._channel is not None
        self.bytes_out += sum(map(len, buffers))
        try:
            self._channel.send(buffers)
        except DisconnectedError as error:
            self._loop.call_soon(self._fail, self._channel, error)
            return
        self._watch_writes()

    def drop(self, error: SparkmirrorError) -> None:
        """Give up this connection (for example, a request had no response) and open a new one."""
        if self._channel is not None:
            self._fail(self._channel, error)

    async def _connect(self) -> None:
        try:
            await self._loop.run_in_executor(None, self._open)
        except SparkmirrorError as error:
            self._lost(error)
            return
        connection, self._opening = self._opening, None
        if self._closed or connection is None:
            return
        self._connection = connection
        self._channel = connection.into_channel()
        self._failures = 0
        self._loop.add_reader(self._channel.fileno(), self._on_readable)
        if connection.login is not None:
            self._renewal = LinkRenewal(connection, self._loop, self._transmit, self.drop)
        self.throttle(connection.throttled_s)
        self._owner.link_ready(self)

    def _open(self) -> None:
        """Runs in another thread, and may end after `close`: then nothing takes the connection over."""
        connection = Connection.open(self.broker.host, self.broker.port, self._settings)
        with self._handing_over:
            if self._closed:
                connection.close()
            else:
                self._opening = connection

    def _on_readable(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            for frame in channel.receive():
                self.bytes_in += _LENGTH_BYTES + len(frame)
                if self._renewal is not None and self._renewal.takes(frame):
                    continue
                self._owner.link_received(self, frame)
                if channel is not self._channel:
                    return
        except DisconnectedError as error:
            self._fail(channel, error)

    def _on_writable(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            channel.flush()
        except DisconnectedError as error:
            self._fail(channel, error)
            return
        self._watch_writes()

    def _watch_writes(self) -> None:
        assert self._channel is not None
        if self._channel.wants_write == self._writing:
            return
        self._writing = not self._writing
        if self._writing:
            self._loop.add_writer(self._channel.fileno(), self._on_writable)
        else:
            self._loop.remove_writer(self._channel.fileno())

    def _fail(self, channel: Channel | None, error: SparkmirrorError) -> None:
        if channel is not None and channel is self._channel:
            self._release()
            self._lost(error)

    def _lost(self, error: SparkmirrorError) -> None:
        if self._closed:
            return
        if isinstance(error, DisconnectedError):
            where = f"broker {self.broker.node_id} of {self._settings.cluster}"
            error = DisconnectedError(f"{where}: {error}", error.code)
        self._failures += 1
        needs_user = isinstance(error, AuthenticationError | ClusterChangedError)
        backoff = _LOGIN_BACKOFF if needs_user else self._backoff
        self._loop.call_later(backoff.delay_s(self._failures, random.random()), self._reconnect)
        self._owner.link_lost(self, error)

    def _reconnect(self) -> None:
        if not self._closed:
            self.start()

    def _release(self) -> None:
        if self._channel is not None:
            self._loop.remove_reader(self._channel.fileno())
            self._loop.remove_writer(self._channel.fileno())
            self._channel.close()
        if self._renewal is not None:
            self._renewal.end()
        if self._throttle is not None:
            self._throttle.cancel()
        self._throttle_s = self.throttled_s
        self._channel = self._connection = self._renewal = self._throttle = None
        self._throttled_until = -inf
        self._writing = False
