"""A cluster in memory behind real sockets and a real clock, for clients of every kind; it needs no JVM."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from sparkmirror.domain.known_brokers import ANY
from sparkmirror.kafka.net.transport import network_of
from tests.memory.cluster import MemoryBroker, MemoryCluster
from tests.support.connections import connection

_HOST: Final = "127.0.0.1"
_START_TIMEOUT_S: Final = 10.0

T = TypeVar("T")


class MemoryServer:
    """Has of `LocalCluster` what clients need: `bootstrap_servers` and the brokers' ports."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cluster: MemoryCluster) -> None:
        self._loop = loop
        self.cluster = cluster
        self.connections: set[_Served] = set()
        self._is_away = False

    @property
    def brokers(self) -> Sequence[MemoryBroker]:
        return self.cluster.brokers

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{broker.host}:{broker.port}" for broker in self.brokers)

    def lead_to(self, other: str | MemoryCluster) -> MemoryCluster:
        """Put another cluster behind the same addresses, by its name an empty one; open connections end."""

        def replaced() -> MemoryCluster:
            former = self.cluster.brokers
            if isinstance(other, str):
                self.cluster = MemoryCluster(self._loop, other, brokers=len(former))
            else:
                self.cluster = other
            for broker, before in zip(self.cluster.brokers, former, strict=True):
                broker.host, broker.port = before.host, before.port
            self.end_connections()
            return self.cluster

        return self.call(replaced)

    def go_away(self) -> None:
        """End all connections, and each new one, until `come_back`."""
        self._is_away = True
        self.call(self.end_connections)

    def come_back(self) -> None:
        self._is_away = False

    def takes(self, connection: "_Served") -> bool:
        """Tell whether the connection is taken; in the cluster's thread."""
        self.connections.add(connection)
        return not self._is_away

    def end_connections(self) -> None:
        """End all connections, in the cluster's thread."""
        for each in list(self.connections):
            each.end()

    def call(self, change: Callable[[], T]) -> T:
        """Do something to the cluster, in its thread."""

        async def called() -> T:
            return change()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(_START_TIMEOUT_S)


def allow_any(server: MemoryServer) -> None:
    """Let any cluster be at its address for clients of this process, as for those of another one."""
    settings = connection(server)
    network_of(settings).known_brokers.mean(settings.bootstrap_servers, ANY)


@contextmanager
def serving(name: str, brokers: int = 1) -> Iterator[MemoryServer]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=f"cluster {name}", daemon=True)
    thread.start()
    cluster = MemoryCluster(loop, name, brokers=brokers)
    server = MemoryServer(loop, cluster)
    listening = asyncio.run_coroutine_threadsafe(_listen(server), loop).result(_START_TIMEOUT_S)
    allow_any(server)  # its ports may have been those of another
    try:
        yield server
    finally:
        server.call(lambda: _close(listening))
        server.call(server.end_connections)
        loop.call_soon_threadsafe(_end, loop)
        thread.join()
        loop.close()


async def _listen(of: MemoryServer) -> list[asyncio.Server]:
    loop, servers = asyncio.get_running_loop(), []
    for at, broker in enumerate(of.cluster.brokers):
        server = await loop.create_server(lambda at=at: _Served(of, at), _HOST, 0)  # type: ignore[misc]
        broker.host, broker.port = _HOST, server.sockets[0].getsockname()[1]
        servers.append(server)
    return servers


def _close(listening: list[asyncio.Server]) -> None:
    for server in listening:
        server.close()


def _end(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_soon(loop.stop)


class _Served(asyncio.Protocol):
    """One connection: one request at a time, as a broker has it."""

    def __init__(self, server: MemoryServer, at: int) -> None:
        self._server = server
        self._broker = server.cluster.brokers[at]
        self._received = bytearray()
        self._requests: deque[bytes] = deque()
        self._is_busy = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._server.takes(self):
            transport.abort()

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                break
            self._requests.append(bytes(self._received[4:end]))
            del self._received[:end]
        self._serve()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._server.connections.discard(self)

    def _serve(self) -> None:
        if not self._is_busy and self._requests:
            self._is_busy = True
            try:
                self._broker.receive(self._requests.popleft(), self._respond)
            except Exception:
                if self._transport is not None:
                    self._transport.abort()
                raise

    def _respond(self, response: bytes, muted_s: float) -> None:
        if self._transport is not None:
            self._transport.write(len(response).to_bytes(4, "big") + response)
        asyncio.get_running_loop().call_later(muted_s, self._unmute)

    def _unmute(self) -> None:
        self._is_busy = False
        self._serve()
