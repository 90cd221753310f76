"""One byte stream to a broker. The only place where a socket is opened; everything above sees a Transport.

Plaintext today. Another security protocol is another class with these four methods.
"""

import socket
from collections.abc import Sequence
from typing import Protocol

from sparkmirror.domain.client_settings import ConnectionSettings, SecurityProtocol
from sparkmirror.domain.errors import ConfigError, DisconnectedError

_BUFFERS_PER_SEND = 64
"""Well below every system's IOV_MAX."""


class Transport(Protocol):
    """A stream that never blocks once `set_timeout(0)` was called.

    Readers read until `receive_into` returns None, so that nothing stays behind in a TLS layer's buffer.
    """

    def fileno(self) -> int: ...

    def set_timeout(self, timeout_s: float) -> None: ...

    def receive_into(self, view: memoryview) -> int | None:
        """How many bytes arrived, at least one; None when there are none now. Raises DisconnectedError."""
        ...

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        """How many bytes were taken, 0 when none fit now. Raises DisconnectedError."""
        ...

    def close(self) -> None: ...


def open_transport(host: str, port: int, settings: ConnectionSettings) -> Transport:
    """Connect within `connect_timeout_s`. Raises DisconnectedError naming the address."""
    if settings.security_protocol is not SecurityProtocol.PLAINTEXT:
        raise ConfigError(
            "security.protocol", settings.security_protocol.value, "only PLAINTEXT is supported so far"
        )
    try:
        sock = socket.create_connection((host, port), timeout=settings.connect_timeout_s)
    except OSError as error:
        raise DisconnectedError(f"can't connect to {host}:{port}: {error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, size in (
        (socket.SO_SNDBUF, settings.send_buffer_bytes),
        (socket.SO_RCVBUF, settings.receive_buffer_bytes),
    ):
        if size > 0:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    return PlainTransport(sock, f"{host}:{port}")


class PlainTransport:
    """A TCP socket."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self._sock = sock
        self._address = address

    def fileno(self) -> int:
        return self._sock.fileno()

    def set_timeout(self, timeout_s: float) -> None:
        self._sock.settimeout(timeout_s)

    def receive_into(self, view: memoryview) -> int | None:
        try:
            received = self._sock.recv_into(view)
        except (BlockingIOError, InterruptedError):
            return None
        except TimeoutError as error:
            raise DisconnectedError(f"{self._address} did not answer in time") from error
        except OSError as error:
            raise DisconnectedError(f"{self._address}: {error}") from error
        if received == 0:
            raise DisconnectedError(f"{self._address} closed the connection")
        return received

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        try:
            return self._sock.sendmsg(buffers[:_BUFFERS_PER_SEND])
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise DisconnectedError(f"{self._address}: {error}") from error

    def close(self) -> None:
        self._sock.close()
