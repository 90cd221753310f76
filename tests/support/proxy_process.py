"""Runs the proxies: reads commands from standard input, one JSON object per line, and answers each by a line.

Everything runs on one asyncio loop. `proxy.Proxy` sends the commands.
"""

import asyncio
import json
import socket
import struct
import sys
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from tests.support.proxy import HOST, Address, Api, Disruption
from tests.support.proxy_frames import FrameAction, Frames, Piece, frame_bytes

_CHUNK_BYTES: Final = 1 << 18
_LINE_BYTES_MAX: Final = 64 << 20
"""The most bytes in flight in one direction of a connection: 50 ms of more than a gigabyte per second."""

_THROTTLED_LINE_BYTES: Final = 1 << 18
_THROTTLED_PIECE_S: Final = 0.01


class _LinkState:
    """The state of one direction of all connections of a proxy."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.rate: float | None = None
        self.open = asyncio.Event()
        self.open.set()

    @property
    def line_bytes_max(self) -> int:
        if self.rate is None:
            return _LINE_BYTES_MAX
        return _THROTTLED_LINE_BYTES + int(self.delay_s * self.rate)


class _Direction:
    """Reads one socket into a delay line and writes another from it."""

    def __init__(
        self,
        source: socket.socket,
        sink: socket.socket,
        link: _LinkState,
        passes: asyncio.Event,
        frames: Frames,
    ) -> None:
        self._passes = passes
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._link = link
        self._frames = frames
        self._line: deque[tuple[float, Piece | None]] = deque()
        self._line_bytes = 0
        self._changed = asyncio.Event()
        self.mute = False
        """Read bytes and drop them."""

    async def read(self) -> None:
        """Forward until the source ends."""
        with suppress(OSError):
            while chunk := await self._loop.sock_recv(self._source, _CHUNK_BYTES):
                for piece in self._frames.pieces(chunk):
                    self._put(piece)
                while self._line_bytes > self._link.line_bytes_max:
                    self._changed.clear()
                    await self._changed.wait()
        self._put(None)

    def _put(self, piece: Piece | None) -> None:
        self._line.append((self._loop.time() + self._link.delay_s, piece))
        self._line_bytes += 0 if piece is None else len(piece.data)
        self._changed.set()

    async def write(self) -> None:
        """Wait until that end has been forwarded too."""
        while True:
            while not self._line:
                self._changed.clear()
                await self._changed.wait()
            due, piece = self._line.popleft()
            if (wait_s := due - self._loop.time()) > 0:
                await asyncio.sleep(wait_s)
            await self._link.open.wait()
            await self._passes.wait()
            if piece is None:
                with suppress(OSError):
                    self._sink.shutdown(socket.SHUT_WR)
                return
            self._line_bytes -= len(piece.data)
            self._changed.set()
            if not self.mute:
                await self._send(memoryview(piece.data))
            if piece.then is not None:
                piece.then()

    async def _send(self, data: memoryview) -> None:
        with suppress(OSError):  # the other direction's reader sees it too
            while data:
                rate = self._link.rate
                size = len(data) if rate is None else max(1, int(rate * _THROTTLED_PIECE_S))
                if rate is not None:  # before: what is forwarded has taken its time
                    await asyncio.sleep(min(size, len(data)) / rate)
                await self._loop.sock_sendall(self._sink, data[:size])
                data = data[size:]


class _Asked(NamedTuple):
    api: int
    frame_bytes: int


class _Connection:
    """One client's connection and ours to the broker for it."""

    def __init__(self, server: "_Server", client: socket.socket) -> None:
        self._server = server
        self._client = client
        self._broker = socket.socket()
        self._broker.setblocking(False)
        for end in (self._client, self._broker):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked: dict[int, _Asked] = {}
        self._under_way: dict[int, int] = {}
        self._passes = asyncio.Event()
        self._passes.set()
        requests, answers = Frames(12, self._request), Frames(8, self._answer)
        self._to_broker = _Direction(client, self._broker, server.to_broker, self._passes, requests)
        self._to_client = _Direction(self._broker, client, server.to_client, self._passes, answers)
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._close)

    async def _run(self) -> None:
        try:
            await asyncio.get_running_loop().sock_connect(self._broker, self._server.broker)
        except OSError:
            return
        async with asyncio.TaskGroup() as group:
            for direction in (self._to_broker, self._to_client):
                group.create_task(direction.read())
                group.create_task(direction.write())

    def _close(self, _: asyncio.Task[None]) -> None:
        self._server.open.discard(self)
        self._client.close()
        self._broker.close()

    def _request(self, head: bytes) -> FrameAction:
        api, _, correlation_id = struct.unpack_from(">hhi", head, 4)
        self._asked[correlation_id] = asked = _Asked(api, frame_bytes(head))
        self._server.requests[api] += 1
        if api == Api.PRODUCE:
            self._under_way[correlation_id] = asked.frame_bytes
            self._server.note_produce(self._under_way.values())
        return self._frame_action("request", asked.api, asked.frame_bytes) or FrameAction()

    def _answer(self, head: bytes) -> FrameAction:
        (correlation_id,) = struct.unpack_from(">i", head, 4)
        api = self._asked.pop(correlation_id, _Asked(-1, 0)).api
        self._server.answers[api] += 1
        action = self._frame_action("answer", api, frame_bytes(head))
        if action is None and api in (Api.METADATA, Api.FIND_COORDINATOR):
            return FrameAction(rewrite=self._server.with_our_addresses)
        return action or FrameAction(then=lambda: self._under_way.pop(correlation_id, None))

    def _frame_action(self, kind: str, api: int, size: int) -> FrameAction | None:
        planned = self._server.due_disruption(kind, api)
        if planned is None:
            return None
        then = None if planned.disruption is Disruption.SWALLOW else partial(self.disturb, planned.disruption)
        return FrameAction(int(size * planned.part), then, keeps_rest=planned.disruption is Disruption.HOLD)

    def disturb(self, disruption: Disruption) -> None:
        if disruption is Disruption.HOLD:
            self._passes.clear()
            return
        self._to_broker.mute = self._to_client.mute = True
        if disruption is Disruption.SILENCE:
            return
        for end in (self._client, self._broker):
            with suppress(OSError):
                if disruption is Disruption.RESET:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    end.shutdown(socket.SHUT_WR)
        # The cancelled task closes its sockets, as a loop must not watch closed ones.
        self._server.open.discard(self)
        self._task.cancel()

    def release(self) -> None:
        self._passes.set()

    def half_close(self) -> None:
        self._to_client.mute = True
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)


@dataclass(slots=True)
class _PlannedDisruption:
    api: int
    kind: str
    part: float
    disruption: Disruption
    after: int


@dataclass(slots=True)
class _Addresses:
    """Brokers' and proxies' addresses as encoded in responses: the host's bytes, then the port."""

    brokers: Sequence[Address]
    ports: list[int] = field(default_factory=list)

    def replaced_in(self, frame: bytes) -> bytes:
        for (host, port), ours in zip(self.brokers, self.ports, strict=True):
            frame = frame.replace(_on_wire(host, port), _on_wire(host, ours))
        return frame


def _on_wire(host: str, port: int) -> bytes:
    return host.encode() + struct.pack(">i", port)


class _Server:
    """One proxy. The public methods are also the commands that `Proxy` sends."""

    def __init__(self, addresses: _Addresses, number: int) -> None:
        self._addresses = addresses
        self._number = number
        self.to_broker, self.to_client = _LinkState(), _LinkState()
        self.open: set[_Connection] = set()
        self.requests: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()
        self._opened = self._disruptions = 0
        self._produce_requests_peak = self._produce_bytes_peak = 0
        self._planned: list[_PlannedDisruption] = []
        self._listener = self._bound(0)
        self.port: int = self._listener.getsockname()[1]
        self._accepting = False
        self._accept()

    # commands

    def restore(self) -> None:
        self.delay(0.0, 0.0)
        self.throttle(None, None)
        self._planned.clear()
        for link in (self.to_broker, self.to_client):
            link.open.set()
        for connection in self.open:
            connection.release()
        if not self._accepting:
            self._accept()

    def delay(self, to_broker_s: float, to_client_s: float) -> None:
        self.to_broker.delay_s, self.to_client.delay_s = to_broker_s, to_client_s

    def throttle(self, to_broker: float | None, to_client: float | None) -> None:
        self.to_broker.rate, self.to_client.rate = to_broker, to_client

    def silence(self) -> None:
        self.to_broker.open.clear()
        self.to_client.open.clear()

    def refuse(self) -> None:
        self._admit()
        if self._accepting:
            self._accepting = False
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = self._bound(self.port)  # no other process gets the port

    def cut(self, disruption: str) -> None:
        self._admit()
        for connection in list(self.open):
            connection.disturb(Disruption(disruption))

    def half_close(self) -> None:
        self._admit()
        for connection in self.open:
            connection.half_close()

    def move(self) -> int:
        self.refuse()
        self._listener.close()
        self._listener = self._bound(0)
        self.port = self._addresses.ports[self._number] = self._listener.getsockname()[1]
        self._accept()
        self.cut(Disruption.RESET.value)
        return self.port

    def disrupt_next(self, api: int, kind: str, part: float, disruption: str, after: int) -> None:
        self._planned.append(_PlannedDisruption(api, kind, part, Disruption(disruption), after))

    def figures(self) -> dict[str, object]:
        return {
            "connections": len(self.open),
            "opened": self._opened,
            "requests": self.requests,
            "answers": self.answers,
            "disruptions": self._disruptions,
            "produce_requests_peak": self._produce_requests_peak,
            "produce_bytes_peak": self._produce_bytes_peak,
        }

    # for connections

    def due_disruption(self, kind: str, api: int) -> _PlannedDisruption | None:
        for planned in self._planned:
            if (planned.kind, planned.api) == (kind, api):
                if planned.after == 0:
                    self._planned.remove(planned)
                    self._disruptions += 1
                    return planned
                planned.after -= 1
        return None

    def note_produce(self, sizes: Any) -> None:
        self._produce_requests_peak = max(self._produce_requests_peak, len(sizes))
        self._produce_bytes_peak = max(self._produce_bytes_peak, sum(sizes))

    @property
    def broker(self) -> Address:
        return self._addresses.brokers[self._number]

    def with_our_addresses(self, frame: bytes) -> bytes:
        return self._addresses.replaced_in(frame)

    # connections

    @staticmethod
    def _bound(port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.setblocking(False)
        return listener

    def _accept(self) -> None:
        self._listener.listen(128)
        asyncio.get_running_loop().add_reader(self._listener, self._admit)
        self._accepting = True

    def _admit(self) -> None:
        """Accept every client whose kernel has connected."""
        with suppress(BlockingIOError):
            while self._accepting:
                client, _ = self._listener.accept()
                client.setblocking(False)
                self._opened += 1
                self.open.add(_Connection(self, client))


async def _serve(brokers: Sequence[Address]) -> None:
    addresses = _Addresses(brokers)
    servers = [_Server(addresses, number) for number in range(len(brokers))]
    addresses.ports.extend(server.port for server in servers)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    _reply(addresses.ports)
    while line := await commands.readline():
        command = json.loads(line)
        _reply(getattr(servers[command["proxy"]], command["do"])(**command["with"]))


def _reply(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve([(host, port) for host, port in json.loads(sys.argv[1])]))
