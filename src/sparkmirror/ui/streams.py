"""Sends parts of pages again while clients are connected, as server-sent events.

About once a second the parts of all that is looked at are made, one for all who look at the same thing, and
sent where they have changed. A client that is slow gets the newest part when it can take one: there is no
queue. All of it runs on one event loop.
Several parts are made in one go, with pauses as long as that took: other requests are served meanwhile.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

EVERY_S: Final = 0.9
"""Tasks report once a second: what happens is seen within two."""
TOGETHER_MAX: Final = 16
_PAUSE_MAX_S: Final = 0.05
"""The longest pause after a part was made, which leaves the event loop to other work."""
_RETRY_MS: Final = 1000


class Part(NamedTuple):
    """`html` is of the time `at`, for display. `trouble` says why there is no newer one."""

    html: str
    at: str = ""
    trouble: str = ""


class Wanted(Hashable, Protocol):
    """Says what a client looks at; equal ones are the same thing."""

    @property
    def user(self) -> Hashable:
        """Names the user: what one user looks at is made together."""
        ...


W = TypeVar("W", bound=Wanted)

Make = Callable[[Sequence[W]], Awaitable[Sequence[Part]]]


class Streams(Generic[W]):
    """`events` is used on one event loop.

    `make` returns a part for each, in their order. It must not raise: a Part has its trouble in it.
    """

    def __init__(self, make: Make[W], every_s: float = EVERY_S) -> None:
        self._make = make
        self._every_s = every_s
        self._shown: dict[W, _Shown] = {}
        self._has_new = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None

    @property
    def looked_at(self) -> int:
        """Counts the things that are looked at now."""
        return len(self._shown)

    async def events(self, wanted: W) -> AsyncGenerator[bytes, None]:
        """Yield what one client gets, without end."""
        shown = self._begun(wanted)
        shown.clients += 1
        try:
            yield f"retry: {_RETRY_MS}\n\n".encode()
            async for event in shown.events():
                yield event
        finally:
            shown.clients -= 1
            if shown.clients == 0:
                self._end(wanted)

    def _begun(self, wanted: W) -> "_Shown":
        shown = self._shown.get(wanted)
        if shown is None:
            shown = self._shown[wanted] = _Shown()
            self._has_new.set()
        if self._rounds is None:
            self._rounds = asyncio.get_running_loop().create_task(self._run())
        return shown

    def _end(self, wanted: W) -> None:
        del self._shown[wanted]
        if not self._shown and self._rounds is not None:
            self._rounds.cancel()
            self._rounds = None

    async def _run(self) -> None:
        """Make all parts each `every_s`, and at once those that a client begins to read in between."""
        loop = asyncio.get_running_loop()
        due_at = loop.time()
        while True:
            self._has_new.clear()
            is_round = loop.time() >= due_at
            if is_round:
                due_at = loop.time() + self._every_s
            wanted = [of for of, shown in self._shown.items() if is_round or shown.is_new]
            for together in _together(wanted):
                await self._make_together(together)
            with suppress(TimeoutError):
                async with asyncio.timeout(due_at - loop.time()):
                    await self._has_new.wait()

    async def _make_together(self, wanted: Sequence[W]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for of, part in zip(wanted, await self._make(wanted), strict=True):
            if (shown := self._shown.get(of)) is not None:
                shown.take(part)
        await asyncio.sleep(min(loop.time() - began, _PAUSE_MAX_S))


class _Shown:
    """Holds one thing that is looked at; its events are written once for all clients."""

    def __init__(self) -> None:
        self.clients = 0
        self.is_new = True
        self._part = Part("")
        self._version = 0
        self._changed = b""
        self._pulse = b""
        self._round = asyncio.Event()

    def take(self, part: Part) -> None:
        self.is_new = False
        if part.trouble:
            part = self._part._replace(trouble=part.trouble)
        elif part.html != self._part.html or not self._version:
            self._version += 1
            self._changed = event(part.html)
        self._part = part
        self._pulse = event(part.trouble, "trouble") if part.trouble else event(part.at, "alive")
        # All clients that wait wake once; one that is still sending checks later for a newer part.
        ended, self._round = self._round, asyncio.Event()
        ended.set()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The part if it has changed, and that the mirror is heard, in one piece each round."""
        version = 0
        while True:
            if version == self._version:
                await self._round.wait()
            is_other, version = version != self._version, self._version
            yield self._changed + self._pulse if is_other else self._pulse


def _together(wanted: Iterable[W]) -> Iterator[Sequence[W]]:
    by_user: dict[Hashable, list[W]] = defaultdict(list)
    for of in wanted:
        by_user[of.user].append(of)
    for every in by_user.values():
        for at in range(0, len(every), TOGETHER_MAX):
            yield every[at : at + TOGETHER_MAX]


def event(data: str, name: str = "") -> bytes:
    """Write an event, with each line of its data on a line of its own."""
    head = f"event: {name}\n".encode() if name else b""
    lines = data.encode("utf-8", "replace")
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return b"%bdata: %b\n\n" % (head, lines.replace(b"\n", b"\ndata: "))
