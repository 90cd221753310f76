"""A network between clients and brokers that does as a test says: delays, throttles, cuts, falls silent.

`proxied` puts a TCP proxy before each of some brokers. Clients that begin at a proxy stay with the proxies:
brokers' own addresses are replaced in Metadata and FindCoordinator answers, so brokers need no settings for
this and whoever asks them directly sees no fault. The proxies live in a process of their own, which ends with
ours: they take no time of our interpreter, and ours can't disturb their clocks.

The process is this file: it reads commands from its standard input, one JSON object a line, and answers each
with one line. Sizes are bytes, times seconds, rates bytes per second.
"""

import asyncio
import json
import socket
import struct
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 1 << 18
_LINE_BYTES_MAX: Final = 64 << 20
"""What may be on its way in one direction of a connection: 50 ms of more than a gigabyte per second."""

_THROTTLED_LINE_BYTES: Final = 1 << 18
_THROTTLED_PIECE_S: Final = 0.01
_POLL_S: Final = 0.005

Address = tuple[str, int]


class Api(IntEnum):
    """The kinds of request that traps wait for, by Kafka's keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26


class Deed(Enum):
    """What becomes of a connection."""

    RESET = "reset"
    """Both ends get a RST; what is on its way is lost."""

    END = "end"
    """Both ends get a FIN; what is on its way is lost."""

    SILENCE = "silence"
    """It stays open, and nothing comes through any more."""

    HOLD = "hold"
    """It stays open, and what comes waits for `restore`: it arrives late, and whole."""

    SWALLOW = "swallow"
    """The rest of this one frame is lost, and everything else comes through."""


class Moment(Enum):
    """When a trap springs: which frame, and how much of it has come through before."""

    REQUEST_HALF_SENT = ("request", 0.5)
    REQUEST_SENT = ("request", 1.0)
    """The broker's kernel has all of it; whether the broker reads it is open."""

    ANSWER_DUE = ("answer", 0.0)
    """The broker did what it was asked, and the client hears nothing of it."""

    ANSWER_HALF_SENT = ("answer", 0.5)


@dataclass(frozen=True, slots=True)
class Figures:
    """What went through a proxy; `requests` and `answers` count frames by API key."""

    connections: int
    """Open now."""
    opened: int
    requests: Counter[int]
    answers: Counter[int]
    sprung: int
    """Traps that have sprung."""
    produce_requests_peak: int
    """The most Produce requests that one connection had under way, seen from the client."""
    produce_bytes_peak: int


class Proxy:
    """One broker's proxy, in another process. Every method takes effect before it returns."""

    def __init__(self, process: "_ProxyProcess", number: int, port: int) -> None:
        self._process = process
        self._number = number
        self.port = port

    @property
    def address(self) -> Address:
        return HOST, self.port

    def restore(self) -> None:
        """Pass on everything at once, accept everybody. What was held back arrives late; no trap is left."""
        self._do("restore")

    def delay(self, *, to_broker_s: float = 0.0, to_client_s: float = 0.0) -> None:
        """Each byte travels so long. The bandwidth stays: many megabytes may be on their way."""
        self._do("delay", to_broker_s=to_broker_s, to_client_s=to_client_s)

    def throttle(self, *, to_broker: float | None = None, to_client: float | None = None) -> None:
        """Bytes per second of each connection; None for as fast as it goes."""
        self._do("throttle", to_broker=to_broker, to_client=to_client)

    def silence(self) -> None:
        """Accept connections and bytes, pass nothing on."""
        self._do("silence")

    def refuse(self) -> None:
        """Refuse new connections; those that are open stay."""
        self._do("refuse")

    def cut(self, deed: Deed = Deed.RESET) -> None:
        """End every connection now."""
        self._do("cut", deed=deed.value)

    def half_close(self) -> None:
        """On every connection the client reads an end; what it sends is passed on all the same."""
        self._do("half_close")

    def move(self) -> None:
        """To another port, which Metadata answers name from now on; open connections are reset."""
        self.port = self._do("move")

    def on_next(self, api: Api, moment: Moment, deed: Deed, *, after: int = 0) -> None:
        """Let `after` frames of this kind pass and spring on the next one, once, on any connection."""
        kind, part = moment.value
        self._do("on_next", api=int(api), kind=kind, part=part, deed=deed.value, after=after)

    @property
    def figures(self) -> Figures:
        answer = self._do("figures")
        for name in ("requests", "answers"):
            answer[name] = Counter({int(api): count for api, count in answer[name].items()})
        return Figures(**answer)

    def await_figures(self, holds: Callable[[Figures], bool], timeout_s: float = 10.0) -> Figures:
        """The first ones for which that holds."""
        deadline = time.monotonic() + timeout_s
        while not holds(figures := self.figures):
            assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {figures}"
            time.sleep(_POLL_S)
        return figures

    def _do(self, method: str, **arguments: object) -> Any:
        return self._process.ask({"proxy": self._number, "do": method, "with": arguments})


class _ProxyProcess:
    def __init__(self, brokers: Sequence[Address]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(Path(__file__)), json.dumps(list(brokers))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ports: list[int] = self._answer()

    def ask(self, command: dict[str, object]) -> Any:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"the proxies ended with {self._child.wait()}"
        return json.loads(line)

    def close(self) -> None:
        """The end of its input ends it."""
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._child.wait()


@contextmanager
def proxied(*brokers: Address) -> Iterator[list[Proxy]]:
    """A proxy before each of these brokers of one cluster, in their order."""
    process = _ProxyProcess(brokers)
    try:
        yield [Proxy(process, number, port) for number, port in enumerate(process.ports)]
    finally:
        process.close()


# The process: everything below runs on one asyncio loop.


class _Piece(NamedTuple):
    """What is passed on together, and what to do when it has been."""

    data: memoryview | bytes
    then: Callable[[], object] | None = None


@dataclass(slots=True)
class _Passage:
    """How one frame comes through."""

    stop_at: int | None = None
    """So many bytes are passed on, then `then` is called; the others are lost. None for all of them."""
    then: Callable[[], object] | None = None
    keeps_rest: bool = False
    """What comes after `then` isn't lost after all."""
    rewrite: Callable[[bytes], bytes] | None = None
    """What the whole frame is replaced by."""


class _Frames:
    """Finds the frames in one direction of a stream; asks `begun` about each as soon as its head is there."""

    def __init__(self, head_bytes: int, begun: Callable[[bytes], _Passage]) -> None:
        self._head_bytes = head_bytes
        self._begun = begun
        self._head = bytearray()
        self._kept = bytearray()
        self._passage = _Passage()
        self._passed = self._left = 0

    def pieces(self, chunk: bytes) -> Iterator[_Piece]:
        view = memoryview(chunk)
        while view:
            if self._left:
                part, view = view[: self._left], view[self._left :]
                yield from self._take(part)
                continue
            missing = self._head_bytes - len(self._head)
            self._head += view[:missing]
            view = view[missing:]
            if len(self._head) == self._head_bytes:
                head = bytes(self._head)
                self._head.clear()
                self._passed, self._left = 0, frame_bytes(head)
                self._passage = self._begun(head)
                yield from self._take(memoryview(head))

    def _take(self, part: memoryview) -> Iterator[_Piece]:
        passage, before = self._passage, self._passed
        self._passed += len(part)
        self._left -= len(part)
        if passage.rewrite is not None:
            self._kept += part
            if not self._left:
                frame = bytes(self._kept)
                self._kept.clear()
                yield _Piece(passage.rewrite(frame))
        elif passage.stop_at is None:
            yield _Piece(part, None if self._left else passage.then)
        elif self._passed < passage.stop_at:
            yield _Piece(part)
        else:
            kept = max(0, passage.stop_at - before)
            then, passage.then = passage.then, None
            yield _Piece(part[:kept], then)
            if passage.keeps_rest:
                yield _Piece(part[kept:])


def frame_bytes(head: bytes) -> int:
    """The frame's size with the four bytes that tell it."""
    return int(struct.unpack_from(">i", head)[0]) + 4


class _Way:
    """What befalls one direction of all connections of a proxy."""

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
        self, source: socket.socket, sink: socket.socket, way: _Way, passes: asyncio.Event, frames: _Frames
    ) -> None:
        self._passes = passes
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._way = way
        self._frames = frames
        self._line: deque[tuple[float, _Piece | None]] = deque()
        self._line_bytes = 0
        self._changed = asyncio.Event()
        self.mute = False
        """Drop what comes; it's taken from the line all the same."""

    async def read(self) -> None:
        """Until the source ends."""
        with suppress(OSError):
            while chunk := await self._loop.sock_recv(self._source, _CHUNK_BYTES):
                for piece in self._frames.pieces(chunk):
                    self._put(piece)
                while self._line_bytes > self._way.line_bytes_max:
                    self._changed.clear()
                    await self._changed.wait()
        self._put(None)

    def _put(self, piece: _Piece | None) -> None:
        self._line.append((self._loop.time() + self._way.delay_s, piece))
        self._line_bytes += 0 if piece is None else len(piece.data)
        self._changed.set()

    async def write(self) -> None:
        """Until that end has been passed on too."""
        while True:
            while not self._line:
                self._changed.clear()
                await self._changed.wait()
            due, piece = self._line.popleft()
            if (wait_s := due - self._loop.time()) > 0:
                await asyncio.sleep(wait_s)
            await self._way.open.wait()
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
                rate = self._way.rate
                size = len(data) if rate is None else max(1, int(rate * _THROTTLED_PIECE_S))
                await self._loop.sock_sendall(self._sink, data[:size])
                if rate is not None:
                    await asyncio.sleep(min(size, len(data)) / rate)
                data = data[size:]


class _Asked(NamedTuple):
    api: int
    frame_bytes: int


class _Connection:
    """One client's connection and ours to the broker for it."""

    def __init__(self, gate: "_Gate", client: socket.socket) -> None:
        self._gate = gate
        self._client = client
        self._broker = socket.socket()
        self._broker.setblocking(False)
        for end in (self._client, self._broker):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked: dict[int, _Asked] = {}
        self._under_way: dict[int, int] = {}
        self._passes = asyncio.Event()
        self._passes.set()
        requests, answers = _Frames(12, self._request), _Frames(8, self._answer)
        self._to_broker = _Direction(client, self._broker, gate.to_broker, self._passes, requests)
        self._to_client = _Direction(self._broker, client, gate.to_client, self._passes, answers)
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._close)

    async def _run(self) -> None:
        try:
            await asyncio.get_running_loop().sock_connect(self._broker, self._gate.broker)
        except OSError:
            return
        async with asyncio.TaskGroup() as group:
            for direction in (self._to_broker, self._to_client):
                group.create_task(direction.read())
                group.create_task(direction.write())

    def _close(self, _: asyncio.Task[None]) -> None:
        self._gate.open.discard(self)
        self._client.close()
        self._broker.close()

    def _request(self, head: bytes) -> _Passage:
        api, _, correlation_id = struct.unpack_from(">hhi", head, 4)
        self._asked[correlation_id] = asked = _Asked(api, frame_bytes(head))
        self._gate.requests[api] += 1
        if api == Api.PRODUCE:
            self._under_way[correlation_id] = asked.frame_bytes
            self._gate.note_produce(self._under_way.values())
        return self._passage("request", asked.api, asked.frame_bytes) or _Passage()

    def _answer(self, head: bytes) -> _Passage:
        (correlation_id,) = struct.unpack_from(">i", head, 4)
        api = self._asked.pop(correlation_id, _Asked(-1, 0)).api
        self._gate.answers[api] += 1
        passage = self._passage("answer", api, frame_bytes(head))
        if passage is None and api in (Api.METADATA, Api.FIND_COORDINATOR):
            return _Passage(rewrite=self._gate.with_our_addresses)
        return passage or _Passage(then=lambda: self._under_way.pop(correlation_id, None))

    def _passage(self, kind: str, api: int, size: int) -> _Passage | None:
        trap = self._gate.sprung_trap(kind, api)
        if trap is None:
            return None
        then = None if trap.deed is Deed.SWALLOW else partial(self.suffer, trap.deed)
        return _Passage(int(size * trap.part), then, keeps_rest=trap.deed is Deed.HOLD)

    def suffer(self, deed: Deed) -> None:
        if deed is Deed.HOLD:
            self._passes.clear()
            return
        self._to_broker.mute = self._to_client.mute = True
        if deed is Deed.SILENCE:
            return
        for end in (self._client, self._broker):
            with suppress(OSError):
                if deed is Deed.RESET:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    end.shutdown(socket.SHUT_WR)
        # Its sockets are closed when it has been cancelled: a loop must not watch what is closed.
        self._gate.open.discard(self)
        self._task.cancel()

    def release(self) -> None:
        self._passes.set()

    def half_close(self) -> None:
        self._to_client.mute = True
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)


@dataclass(slots=True)
class _Trap:
    api: int
    kind: str
    part: float
    deed: Deed
    after: int


@dataclass(slots=True)
class _Addresses:
    """Brokers' addresses and their proxies', as they stand in answers: the host's bytes, then the port."""

    brokers: Sequence[Address]
    ports: list[int] = field(default_factory=list)

    def replaced_in(self, frame: bytes) -> bytes:
        for (host, port), ours in zip(self.brokers, self.ports, strict=True):
            frame = frame.replace(_on_wire(host, port), _on_wire(host, ours))
        return frame


def _on_wire(host: str, port: int) -> bytes:
    return host.encode() + struct.pack(">i", port)


class _Gate:
    """One proxy. Its public methods without underscores are also the commands that `Proxy` sends."""

    def __init__(self, addresses: _Addresses, number: int) -> None:
        self._addresses = addresses
        self._number = number
        self.to_broker, self.to_client = _Way(), _Way()
        self.open: set[_Connection] = set()
        self.requests: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()
        self._opened = self._sprung = 0
        self._produce_requests_peak = self._produce_bytes_peak = 0
        self._traps: list[_Trap] = []
        self._listener = self._bound(0)
        self.port: int = self._listener.getsockname()[1]
        self._accepting = False
        self._accept()

    # what befalls connections

    def restore(self) -> None:
        self.delay(0.0, 0.0)
        self.throttle(None, None)
        self._traps.clear()
        for way in (self.to_broker, self.to_client):
            way.open.set()
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
            self._listener = self._bound(self.port)  # nobody else gets the port

    def cut(self, deed: str) -> None:
        self._admit()
        for connection in list(self.open):
            connection.suffer(Deed(deed))

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
        self.cut(Deed.RESET.value)
        return self.port

    def on_next(self, api: int, kind: str, part: float, deed: str, after: int) -> None:
        self._traps.append(_Trap(api, kind, part, Deed(deed), after))

    def figures(self) -> dict[str, object]:
        return {
            "connections": len(self.open),
            "opened": self._opened,
            "requests": self.requests,
            "answers": self.answers,
            "sprung": self._sprung,
            "produce_requests_peak": self._produce_requests_peak,
            "produce_bytes_peak": self._produce_bytes_peak,
        }

    # what connections ask

    def sprung_trap(self, kind: str, api: int) -> _Trap | None:
        for trap in self._traps:
            if (trap.kind, trap.api) == (kind, api):
                if trap.after == 0:
                    self._traps.remove(trap)
                    self._sprung += 1
                    return trap
                trap.after -= 1
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
        """Whoever has connected, as their own kernel sees it."""
        with suppress(BlockingIOError):
            while self._accepting:
                client, _ = self._listener.accept()
                client.setblocking(False)
                self._opened += 1
                self.open.add(_Connection(self, client))


async def _serve(brokers: Sequence[Address]) -> None:
    addresses = _Addresses(brokers)
    gates = [_Gate(addresses, number) for number in range(len(brokers))]
    addresses.ports.extend(gate.port for gate in gates)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    _reply(addresses.ports)
    while line := await commands.readline():
        command = json.loads(line)
        _reply(getattr(gates[command["proxy"]], command["do"])(**command["with"]))


def _reply(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve([(host, port) for host, port in json.loads(sys.argv[1])]))
