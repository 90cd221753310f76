"""`python -m bench.rest_clients --url URL --paths …`: clients that poll, each on its connection.

A process of its own; it prints what it saw as JSON. Every client asks at a steady rate, whatever the answers
take; the time of an answer counts from when it was due to be asked for, so that an answer that comes late
does not hide those that had to wait behind it.

With `--floor` it starts no clients but a server that answers everything with the same words: what it takes
to ask that one is what the clients, the kernel and the machine cost.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from urllib.parse import urlsplit

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_FLOOR_BODY = json.dumps(
    {"name": "x" * 16, "connector": {"state": "RUNNING"}, "tasks": [{"id": 0}] * 4}
).encode()
_FLOOR_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_FLOOR_BODY)
    + _FLOOR_BODY
)
_TIMEOUT_S = 10.0


class _Client(asyncio.Protocol):
    """One connection. Who has no answer yet when the next is due asks right after it."""

    def __init__(self, seen: "Seen", requests: Sequence[bytes], first: int) -> None:
        self._seen = seen
        self._requests = requests
        self._numbers = count(first)
        self._due: deque[float] = deque()
        self._is_asking = False
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, due: float) -> None:
        self._due.append(due)
        if not self._is_asking:
            self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(_HEAD_END)
        if not found or len(rest) < _length(head):
            return
        self._buffer = b""
        self._seen.take(int(head[9:12]), asyncio.get_running_loop().time() - self._due.popleft())
        self._is_asking = False
        if self._due:
            self._send()

    def _send(self) -> None:
        self._is_asking = True
        self._transport.write(self._requests[next(self._numbers) % len(self._requests)])


def _length(head: bytes) -> int:
    """Return the body's length, which a server must send."""
    lower = head.lower()
    at = lower.index(_LENGTH) + len(_LENGTH)
    return int(lower[at:].split(b"\r\n", 1)[0])


class Seen:
    """Seconds of every answer, and how many came with which status; how many did not come."""

    def __init__(self, asked: int) -> None:
        self.took_s: list[float] = []
        self.codes: Counter[int] = Counter()
        self._left = asked
        self._all_there = asyncio.Event()

    @property
    def lost(self) -> int:
        return self._left

    def take(self, code: int, took_s: float) -> None:
        self.codes[code] += 1
        self.took_s.append(took_s)
        self._left -= 1
        if not self._left:
            self._all_there.set()

    async def await_all(self, timeout_s: float) -> None:
        """Until every answer came; those that don't in time are lost."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_there.wait(), timeout_s)


async def _poll(options: argparse.Namespace) -> Seen:
    url, loop = urlsplit(options.url), asyncio.get_running_loop()
    turns = round(options.seconds * options.per_second)
    seen = Seen(options.clients * turns)
    requests = [_request(path, url.netloc) for path in options.paths.split(",")]
    clients = []
    for number in range(options.clients):
        made = partial(_Client, seen, requests, number)
        _, client = await loop.create_connection(made, url.hostname, url.port)
        clients.append(client)
    print("ready", flush=True)
    every_s, began = 1 / options.per_second, loop.time()
    for turn in range(turns):
        for number, client in enumerate(clients):  # spread over the turn
            due = began + every_s * (turn + number / len(clients))
            await asyncio.sleep(max(0.0, due - loop.time()))
            client.ask(due)
    await seen.await_all(_TIMEOUT_S)
    return seen


def _request(path: str, host: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n".encode()


class _Floor(asyncio.Protocol):
    """Answers each request with the same bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(_HEAD_END)):
            self._transport.write(_FLOOR_ANSWER)


async def _serve_floor() -> None:
    server = await asyncio.get_running_loop().create_server(_Floor, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rest_clients", description=__doc__)
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--paths", help="comma-separated; each client asks for them in turn")
    parser.add_argument("--clients", type=int)
    parser.add_argument("--per-second", type=float, help="requests of each client")
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args(arguments)
    if options.floor:
        asyncio.run(_serve_floor())
        return
    cpu_s = time.process_time()
    seen = asyncio.run(_poll(options))
    figures = {
        "took_ms": [round(1000 * took_s, 3) for took_s in seen.took_s],
        "codes": seen.codes,
        "lost": seen.lost,
        "cpu_s": time.process_time() - cpu_s,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
