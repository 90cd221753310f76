"""Opens byte streams to brokers. The only place where a socket is opened; everything above sees a Transport.

`PlainTransport` is here, that of TLS in `tls_transport`, loaded when it is needed.
"""

import math
import select
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings, Network
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.known_brokers import Address, KnownBrokers, Meant
from sparkmirror.domain.network import InterruptedWaitError, Interruption, Transport, host_port

_BUFFERS_PER_SEND = 64
"""Well below every system's IOV_MAX."""

# A suspended machine has been gone for as long, and Linux's monotonic clock stops meanwhile.
_BOOTTIME: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _open_transport(host: str, port: int, settings: ConnectionSettings) -> Transport:
    """Connect within `connect_timeout_s`. Raises DisconnectedError naming the address, ConfigError."""
    if not settings.security_protocol.is_encrypted:
        return PlainTransport(_connected(host, port, settings), host_port(host, port))
    from sparkmirror.kafka.net.tls_transport import connect_tls  # noqa: PLC0415 - starts are quicker without it

    return connect_tls(host, port, settings, _connected)


def _connected(host: str, port: int, settings: ConnectionSettings) -> socket.socket:
    try:
        sock = socket.create_connection((host, port), timeout=settings.connect_timeout_s)
    except OSError as error:
        raise DisconnectedError(f"can't connect to {host_port(host, port)}: {error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, size in (
        (socket.SO_SNDBUF, settings.send_buffer_bytes),
        (socket.SO_RCVBUF, settings.receive_buffer_bytes),
    ):
        if size > 0:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    return sock


class SocketNetwork:
    """The operating system's sockets and monotonic clock."""

    def __init__(self) -> None:
        self.known_brokers = KnownBrokers()

    def connect(self, host: str, port: int, settings: ConnectionSettings) -> Transport:
        return _open_transport(host, port, settings)

    def time(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def boottime(self) -> float:
        return time.clock_gettime(_BOOTTIME)

    def interruption(self) -> Interruption:
        return _PollInterruption()

    def lock(self) -> AbstractContextManager[object]:
        return threading.Lock()


_SOCKETS: Final = SocketNetwork()
"""The network of this process, with what its clients know of brokers."""


def network_of(settings: ConnectionSettings) -> Network:
    """The network that the settings name, the operating system's if they name none."""
    return settings.network or _SOCKETS


def meant_clusters(connections: Iterable[ConnectionSettings]) -> Mapping[tuple[Address, ...], Meant]:
    """Return the clusters that are meant, by bootstrap servers, for another process."""
    found = {
        each.bootstrap_servers: network_of(each).known_brokers.meant(each.bootstrap_servers)
        for each in connections
    }
    return {servers: cluster for servers, cluster in found.items() if cluster.cluster_id}


def hold_to(meant: Mapping[tuple[Address, ...], Meant], connections: Iterable[ConnectionSettings]) -> None:
    """Hold connections to the clusters that `meant_clusters` returned."""
    for each in connections:
        if each.bootstrap_servers in meant:
            known = network_of(each).known_brokers
            known.mean(each.bootstrap_servers, meant[each.bootstrap_servers])


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


class _PollInterruption:
    """Polls a pipe beside the socket.

    Interrupting a blocking socket would mean closing it under the waiting thread.
    """

    def __init__(self) -> None:
        self._reads, self._writes = socket.socketpair()
        self._lock = threading.Lock()
        self._is_open = True

    def set(self) -> None:
        with self._lock:
            if self._is_open:
                self._writes.send(b"\0")

    def wait(self, timeout_s: float, fileno: int | None = None) -> bool:
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
