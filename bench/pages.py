"""Measures what the pages of a large, busy mirror cost the process that serves them, without a broker.

`python -m bench.pages [PARTITIONS] [MINUTES]`: time and size of a page; then the CPU of the server, as a
share of one core and without what reports take, while nobody looks, with 1 page, 50 pages, and 500 streams
for so many minutes, whose memory is looked at. A stream is what an open page receives, part for part.
"""

import asyncio
import http.client
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil

from bench.view import FLOW
from sparkmirror.ui.page_looks import query

_OF_FLOW: Final = tuple(f"{page}?{query(str(FLOW))}" for page in ("flow", "groups"))
_PAGES: Final = ("", *_OF_FLOW, f"topic?{query(str(FLOW), 'topic-7')}")
_SETTLE_S: Final = 5.0
_WATCHED_S: Final = 30.0
_PAGES_OPEN: Final = 50
_STREAMS: Final = 500
_PULSE: Final = b"event: alive"
_ROUNDS: Final = 10
_BUFFER: Final = 1 << 16


def live(number: int) -> str:
    """The overview, the flow, its groups, and then one topic after the other."""
    paths = ("overview", *_OF_FLOW)
    return paths[number] if number < len(paths) else f"topic?{query(str(FLOW), f'topic-{number}')}"


class Streams:
    """Open streams, which read all that they get and keep nothing."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url)
        self._tasks: list[asyncio.Task[None]] = []
        self.bytes = self.pulses = 0
        self.longest_wait_s = 0.0
        """Between two things that one stream received."""

    async def open(self, paths: Sequence[str], settle_s: float = _SETTLE_S) -> None:
        """Raises what has ended one of them by then."""
        self._tasks += [asyncio.create_task(self._read(path)) for path in paths]
        await asyncio.sleep(settle_s)
        self.require_all()

    def require_all(self) -> None:
        """Raises what has ended one of them."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _read(self, path: str) -> None:
        reader, writer = await asyncio.open_connection(self._host.hostname, self._host.port)
        try:
            writer.write(f"GET /ui/live/{path} HTTP/1.1\r\nHost: {self._host.netloc}\r\n\r\n".encode())
            status = await reader.readline()
            if b" 200 " not in status:
                raise RuntimeError(f"GET /ui/live/{path}: {status!r}")
            heard_at = time.monotonic()
            while part := await reader.read(_BUFFER):
                self.bytes += len(part)
                self.pulses += part.count(_PULSE)
                now = time.monotonic()
                self.longest_wait_s, heard_at = max(self.longest_wait_s, now - heard_at), now
            raise RuntimeError(f"The stream of {path} ended")
        finally:
            writer.close()


class Server:
    def __init__(self, process: psutil.Process, url: str) -> None:
        self._process = process
        self._url = url

    async def cpu_share(self, seconds: float) -> float:
        """Percent of one core."""
        before, began = self._cpu_s(), time.monotonic()
        await asyncio.sleep(seconds)
        return 100 * (self._cpu_s() - before) / (time.monotonic() - began)

    @property
    def mb(self) -> float:
        return float(self._process.memory_info().rss / 1e6)

    def _cpu_s(self) -> float:
        """Return CPU seconds, except those of making and taking reports, which is no cost of looking."""
        with urlopen(f"{self._url}/metrics", timeout=60) as response:
            of_reports = float(response.read())
        times = self._process.cpu_times()
        return float(times.user + times.system) - of_reports


def whole_pages(url: str) -> None:
    host = urlsplit(url)
    for path in _PAGES:
        took, body = [], b""
        for _ in range(_ROUNDS):
            connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=60)
            began = time.perf_counter()
            connection.request("GET", f"/ui/{path}", headers={"Accept-Encoding": "gzip"})
            body = connection.getresponse().read()
            took.append(time.perf_counter() - began)
            connection.close()
            time.sleep(1.0)  # a new view each time
        name = path.partition("?")[0] or "overview"
        median, most = sorted(took)[_ROUNDS // 2], max(took)
        print(f"{name}: {1000 * median:.0f} ms (at most {1000 * most:.0f}), {len(body):,} bytes with gzip")


async def streams(url: str, server: Server, minutes: float) -> None:
    opened = Streams(url)
    print(f"nobody looks: {await server.cpu_share(_WATCHED_S):.2f} % of a core; {server.mb:.0f} MB")
    for name, paths in (
        ("1 page", [live(1)]),
        ("50 pages of the same flow", [live(1)] * _PAGES_OPEN),
        ("50 pages, each of another thing", [live(number) for number in range(_PAGES_OPEN)]),
    ):
        await opened.open(paths)
        print(f"{name}: {await _watched(opened, server, _WATCHED_S, len(paths))}", flush=True)
        await opened.close()
    await opened.open([live(number % _PAGES_OPEN) for number in range(_STREAMS)])
    for minute in range(max(1, round(minutes))):
        watched = await _watched(opened, server, 60.0, _STREAMS)
        longest = f"the longest wait of one {opened.longest_wait_s:.1f} s"
        print(f"{_STREAMS} streams, minute {minute + 1}: {watched}, {longest}", flush=True)
    await opened.close()
    await asyncio.sleep(_SETTLE_S)
    print(f"after all are closed: {server.mb:.0f} MB")


async def _watched(opened: Streams, server: Server, seconds: float, clients: int) -> str:
    """Watch for some seconds: on a busy machine rounds are fewer, but each takes the same CPU."""
    before, began = opened.pulses, time.monotonic()
    share = await server.cpu_share(seconds)
    opened.require_all()
    rounds = (opened.pulses - before) / (time.monotonic() - began) / clients
    took = f"{10 * share / rounds:.1f} ms a round" if rounds else "no round"
    return f"{share:.2f} % of a core, {rounds:.2f} rounds/s, {took}; {server.mb:.0f} MB"


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    with ExitStack() as opened:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.page_server", str(partitions)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        opened.enter_context(process)
        opened.callback(process.terminate)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        time.sleep(_SETTLE_S)
        whole_pages(url)
        asyncio.run(streams(url, Server(psutil.Process(process.pid), url), minutes))


if __name__ == "__main__":
    main()
