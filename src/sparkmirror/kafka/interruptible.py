"""Waits for brokers in a way that another thread can interrupt at once.

Interrupting a blocking socket would mean closing it under the waiting thread, and one that connects can't be.
"""

import math
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.network import Transport
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.connection_pool import Address
from sparkmirror.kafka.transport import network_of

Pause = Callable[[int, float], object]
"""Returns when this descriptor can be read, after so many seconds, or sooner. May raise to end the wait."""


class InterruptedWaitError(Exception):
    """Another thread called `Interruption.set`."""


class Interruption:
    """Interrupts one thread's `wait`; `set` may be called in any thread."""

    def __init__(self) -> None:
        self._reads, self._writes = socket.socketpair()
        self._lock = threading.Lock()
        self._is_open = True

    def set(self) -> None:
        """Make the current wait, or else the next one, raise; each call interrupts one wait."""
        with self._lock:
            if self._is_open:
                self._writes.send(b"\0")

    def wait(self, timeout_s: float, fileno: int | None = None) -> bool:
        """Whether the descriptor can be read, or has ended. Raises InterruptedWaitError."""
        poller = select.poll()
        poller.register(self._reads, select.POLLIN)
        if fileno is not None:
            poller.register(fileno, select.POLLIN)
        ready = {found for found, _ in poller.poll(math.ceil(max(0.0, timeout_s) * 1000))}
        if self._reads.fileno() in ready:
            self._reads.recv(1)
            raise InterruptedWaitError
        return fileno in ready

    def close(self) -> None:
        with self._lock:
            self._is_open = False
            self._reads.close()
            self._writes.close()


class InterruptibleConnection(Connection):
    """Waits for responses by its owner's `pause`. Only connecting blocks, for `connect_timeout_s` at most."""

    def __init__(self, transport: Transport, address: str, client_id: str, pause: Pause) -> None:
        super().__init__(transport, address, client_id)
        self._pause = pause
        self.is_busy = False
        """A response is due: a broker reads nothing else on a connection before it has sent that."""

    @classmethod
    def connect(
        cls, address: Address, settings: ConnectionSettings, pause: Pause
    ) -> "InterruptibleConnection":
        """As `open`. Raises what that raises, and what `pause` raises."""
        host, port = address
        transport = network_of(settings).connect(host, port, settings)
        connection = cls(transport, f"{host}:{port}", settings.client_id, pause)
        connection.negotiate(settings.request_timeout_s)
        return connection

    def fileno(self) -> int:
        return self.into_channel().fileno()

    def ask(self, frame: Sequence[bytes | memoryview], name: str, timeout_s: float) -> memoryview:
        deadline = time.monotonic() + timeout_s
        channel = self.into_channel()
        self.is_busy = True
        channel.send(frame)
        while True:
            for response in channel.receive():
                self.is_busy = False
                return response
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DisconnectedError(f"{self.address} did not answer {name} within {timeout_s:.1f} s")
            self._pause(channel.fileno(), left_s)
            channel.flush()

    def check_idle(self) -> None:
        """Raise DisconnectedError if anything can be read without a request, usually the stream's end."""
        for _ in self.into_channel().receive():
            raise DisconnectedError(f"{self.address} sent a response to no request")
