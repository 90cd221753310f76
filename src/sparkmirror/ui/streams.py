"""Sends parts of pages again while somebody looks, as server-sent events.

A part is made once a second for all who look at the same thing, and sent if it has changed. A client that is
slow gets the newest part when it can take one: there is no queue. All of it runs on one event loop.
Parts are made one after the other, with pauses as long as they took: other requests are served meanwhile.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from functools import partial
from typing import Final, NamedTuple

EVERY_S: Final = 1.0
_PAUSE_MAX_S: Final = 0.05
"""What takes longer waits for another node."""
_RETRY_MS: Final = 1000
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


class Part(NamedTuple):
    """`html` is of the time `at`, for display. `trouble` says why there is no newer one."""

    html: str
    at: str = ""
    trouble: str = ""


Make = Callable[[], Awaitable[Part]]


class Streams:
    """`events` is used on one event loop. `make` must not raise: a Part has its trouble in it."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._shown: dict[Hashable, _Shown] = {}
        self._turn = asyncio.Lock()

    @property
    def looked_at(self) -> int:
        """How many things somebody looks at now."""
        return len(self._shown)

    async def events(self, key: Hashable, make: Make) -> AsyncGenerator[bytes, None]:
        """What one client gets, without end. The same `key` stands for the same thing."""
        shown = self._shown.get(key)
        if shown is None:
            shown = self._shown[key] = _Shown(partial(self._in_turn, make), self._every_s)
        shown.clients += 1
        try:
            yield f"retry: {_RETRY_MS}\n\n".encode()
            async for event in shown.events():
                yield event
        finally:
            shown.clients -= 1
            if shown.clients == 0:
                del self._shown[key]
                shown.end()

    async def _in_turn(self, make: Make) -> Part:
        loop = asyncio.get_running_loop()
        async with self._turn:
            began = loop.time()
            part = await make()
            await asyncio.sleep(min(loop.time() - began, _PAUSE_MAX_S))
        return part


class _Shown:
    """One thing that is looked at."""

    def __init__(self, make: Make, every_s: float) -> None:
        self.clients = 0
        self._make = make
        self._every_s = every_s
        self._part = Part("")
        self._version = 0
        self._round = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def end(self) -> None:
        self._task.cancel()

    async def events(self) -> AsyncGenerator[bytes, None]:
        version = 0
        while True:
            await self._round.wait()
            part = self._part
            if self._version != version:
                version = self._version
                yield event(part.html)
            if part.trouble:
                yield event(part.trouble, "trouble")
            else:
                yield event(part.at, "alive")

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            part = await self._make()
            if not part.trouble and part.html != self._part.html:
                self._version += 1
            self._part = part if not part.trouble else self._part._replace(trouble=part.trouble)
            # All who wait wake once; whoever is still sending waits for the next round.
            ended, self._round = self._round, asyncio.Event()
            ended.set()
            await asyncio.sleep(max(0.0, began + self._every_s - loop.time()))


def event(data: str, name: str = "") -> bytes:
    """One event; each line of its data on a line of its own."""
    head = f"event: {name}\n" if name else ""
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(data))
    return f"{head}{lines}\n".encode("utf-8", "replace")
