"""A network in memory: connections to brokers of clusters in memory, with delays and faults.

A frame travels for a moment, drawn again for each, and arrives in the order in which it was sent. What may go
wrong with a request is drawn by a `Faults`.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.known_brokers import KnownBrokers
from sparkmirror.domain.network import InterruptedWaitError
from tests.memory.event_loop import Readable, VirtualLoop
from tests.memory.virtual_time import TurnExecutor, VirtualLock, VirtualTime

Respond = Callable[[bytes, float], None]
"""Gets a response without its size, and for how many seconds the broker mutes the connection behind it."""


class Fate(Enum):
    """The fate of a request."""

    WELL = auto()
    REQUEST_LOST = auto()
    """The connection ends before the broker has it."""
    RESPONSE_LOST = auto()
    """The broker carries it out; the connection ends before its response arrives."""
    SILENCE = auto()
    """The broker carries it out; from then on nothing arrives, and the connection stays open."""
    LATE = auto()
    """The connection ends, and the broker gets the request at `MemoryNetwork.deliver`."""


class Faults(Protocol):
    def fate(self, api_key: int, /) -> Fate: ...


class _NoFaults:
    def fate(self, _api_key: int, /) -> Fate:
        return Fate.WELL


class Endpoint(Protocol):
    """A broker as the network sees it."""

    @property
    def is_up(self) -> bool: ...

    def receive(self, request: bytes, respond: Respond) -> None:
        """Carry a request out; a response may come later, and goes to `respond`."""


class MemoryNetwork:
    """`sparkmirror.domain.network.Network`; endpoints are added by the address that clients use."""

    def __init__(
        self, time: VirtualTime, rng: random.Random | None = None, faults: Faults | None = None
    ) -> None:
        self.virtual_time = time
        self.known_brokers = KnownBrokers()
        self.faults: Faults = faults or _NoFaults()
        self.readable = Readable()
        self._rng = rng or random.Random(0)
        self._endpoints: dict[tuple[str, int], Endpoint] = {}
        self._links: list[_Link] = []
        self._late: list[tuple[Endpoint, bytes]] = []
        self.hung: set[Endpoint] = set()
        """Brokers that accept connections and requests, and do nothing until `wake`."""
        self.unreachable: set[Endpoint] = set()
        """Brokers that run, and whose listener can't be reached from here."""

    def loop(self) -> VirtualLoop:
        return VirtualLoop(self.virtual_time, self.readable)

    def executor(self, calls_max: int = 1 << 30) -> TurnExecutor:
        return TurnExecutor(self.virtual_time, calls_max)

    def add(self, host: str, port: int, endpoint: Endpoint) -> None:
        self._endpoints[host, port] = endpoint

    def time(self) -> float:
        return self.virtual_time.time()

    def sleep(self, seconds: float) -> None:
        self.virtual_time.sleep(seconds)

    def boottime(self) -> float:
        return self.virtual_time.time()

    def interruption(self) -> "MemoryInterruption":
        return MemoryInterruption(self)

    def lock(self) -> VirtualLock:
        return VirtualLock(self.virtual_time)

    def connect(self, host: str, port: int, settings: ConnectionSettings) -> "MemoryTransport":
        del settings  # the delay is below every time-out
        delay_s = self.delay_s()
        endpoint = self._endpoints.get((host, port))
        if endpoint is None or endpoint in self.unreachable or not (endpoint.is_up or endpoint in self.hung):
            self.sleep(delay_s)
            raise DisconnectedError(f"can't connect to {host}:{port}: refused")
        # The first request travels as much longer: so the caller needs no turn only for this.
        link = _Link(self, endpoint, f"{host}:{port}", delay_s)
        self._links.append(link)
        return link.client

    def delay_s(self) -> float:
        return self._rng.uniform(0.0001, 0.003)

    def disconnect(self, endpoint: Endpoint | None = None) -> None:
        """End all connections, or those to one broker, as its crash does."""
        for link in [link for link in self._links if endpoint in (None, link.endpoint)]:
            link.end()

    def hold(self, endpoint: Endpoint, request: bytes) -> None:
        self._late.append((endpoint, request))

    def deliver(self) -> int:
        """Brokers get the requests that are late; their responses reach nobody. How many."""
        late, self._late = self._late, []
        for endpoint, request in late:
            endpoint.receive(request, lambda *_: None)
        return len(late)

    def wake(self, endpoint: Endpoint) -> None:
        """A broker that hung answers what it was asked."""
        self.hung.discard(endpoint)
        for link in [link for link in self._links if link.endpoint is endpoint]:
            link.serve()

    def forget(self, link: "_Link") -> None:
        if link in self._links:
            self._links.remove(link)


class _Link:
    """One connection: a broker takes one request after the other from it."""

    def __init__(self, network: MemoryNetwork, endpoint: Endpoint, address: str, delay_s: float) -> None:
        self.network = network
        self.endpoint = endpoint
        self.client = MemoryTransport(self, address)
        self._requests: deque[bytes] = deque()
        self._is_busy = self._is_silent = self._is_cut = self._is_closed = False
        self._arrives_at = network.time() + delay_s

    def travel(self, call: Callable[..., object], *args: object) -> None:
        """Later, and not before what was sent earlier."""
        time = self.network.virtual_time
        self._arrives_at = max(self._arrives_at, time.time() + self.network.delay_s())
        time.call_at(self._arrives_at, call, *args)

    def arrive(self, request: bytes) -> None:
        if not self._is_cut:
            self._requests.append(request)
            self.serve()

    def serve(self) -> None:
        """Let the broker have the next request."""
        if self._is_busy or not self._requests or self._is_silent or self.endpoint in self.network.hung:
            return
        request = self._requests.popleft()
        fate = self.network.faults.fate(int.from_bytes(request[:2], "big"))
        if fate is Fate.LATE:
            self.network.hold(self.endpoint, request)
        if fate in (Fate.REQUEST_LOST, Fate.LATE):
            self.end()
            return
        self._is_busy = True
        self.endpoint.receive(request, lambda response, muted_s: self._respond(response, muted_s, fate))

    def _unmute(self) -> None:
        self._is_busy = False
        self.serve()

    def _respond(self, response: bytes, muted_s: float, fate: Fate) -> None:
        self._is_busy = False
        if self._is_closed:
            self.serve()
        elif fate is Fate.RESPONSE_LOST:
            self.end()
        elif fate is Fate.SILENCE:
            self._is_silent = True
        else:
            self.travel(self.client.arrive, len(response).to_bytes(4, "big") + response)
            self._is_busy = muted_s > 0
            if self._is_busy:
                self.network.virtual_time.call_later(muted_s, self._unmute)
            self.serve()

    def end(self) -> None:
        """End the connection at the broker or on the way: what is under way is lost."""
        self._is_cut = True
        self._requests.clear()
        self.close()
        self.client.hang_up()

    def close(self) -> None:
        """Close it at the client: what it sent before still arrives, perhaps after it was sent again."""
        self._is_closed = True
        self.network.forget(self)


class MemoryTransport:
    """The client's end: `sparkmirror.domain.network.Transport`."""

    def __init__(self, link: _Link, address: str) -> None:
        self._link = link
        self._address = address
        self._network = link.network
        self._number = link.network.readable.new()
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._timeout_s = 0.0
        self._is_closed = self._has_ended = False

    def fileno(self) -> int:
        return self._number

    def set_timeout(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def receive_into(self, view: memoryview) -> int | None:
        if not self._can_be_read() and self._timeout_s > 0:
            self._network.virtual_time.wait(self._can_be_read, self._timeout_s)
            if not self._can_be_read():
                raise DisconnectedError(f"{self._address} did not answer in time")
        if self._incoming:
            size = min(len(view), len(self._incoming))
            view[:size] = self._incoming[:size]
            del self._incoming[:size]
            self._note_readable()
            return size
        if self._has_ended or self._is_closed:
            raise DisconnectedError(f"{self._address} closed the connection")
        return None

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        if self._has_ended or self._is_closed:
            raise DisconnectedError(f"{self._address}: broken pipe")
        sent = 0
        for buffer in buffers:
            self._outgoing += buffer
            sent += len(buffer)
        while len(self._outgoing) >= 4:
            end = 4 + int.from_bytes(self._outgoing[:4], "big")
            if len(self._outgoing) < end:
                break
            self._link.travel(self._link.arrive, bytes(self._outgoing[4:end]))
            del self._outgoing[:end]
        return sent

    def close(self) -> None:
        self._is_closed = True
        self._network.readable.ready.discard(self._number)
        self._link.close()
        self._network.virtual_time.wake()

    def arrive(self, data: bytes) -> None:
        if not self._is_closed and not self._has_ended:
            self._incoming += data
            self._note_readable()

    def hang_up(self) -> None:
        self._has_ended = True
        if not self._is_closed:
            self._note_readable()

    def _can_be_read(self) -> bool:
        return bool(self._incoming) or self._has_ended or self._is_closed

    def _note_readable(self) -> None:
        if self._incoming or self._has_ended:
            self._network.readable.ready.add(self._number)
            self._network.virtual_time.wake()
        else:
            self._network.readable.ready.discard(self._number)


class MemoryInterruption:
    """`sparkmirror.domain.network.Interruption`."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._pending = 0

    def set(self) -> None:
        self._pending += 1
        self._network.virtual_time.wake()

    def wait(self, timeout_s: float, fileno: int | None = None) -> bool:
        ready = self._network.readable.ready
        self._network.virtual_time.wait(lambda: self._pending > 0 or fileno in ready, max(0.0, timeout_s))
        if self._pending:
            self._pending -= 1
            raise InterruptedWaitError
        return fileno in ready

    def close(self) -> None:
        """Close; no resource is held."""
