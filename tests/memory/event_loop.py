"""An asyncio event loop in virtual time, whose descriptors are those of the network in memory."""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any, Final

from tests.memory.virtual_time import VirtualTime

_MADE_UP_FROM: Final = 1 << 20


class Readable:
    """The made-up descriptors that can be read now. Real ones have lower numbers."""

    def __init__(self) -> None:
        self._next = _MADE_UP_FROM
        self.ready: set[int] = set()

    def new(self) -> int:
        self._next += 1
        return self._next


class _Selector(selectors.BaseSelector):
    """Lets events happen until a registered descriptor is ready, the loop has work, or time is over."""

    def __init__(self, time: VirtualTime, readable: Readable) -> None:
        self._time = time
        self._readable = readable
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._writers: set[int] = set()
        """A network in memory takes everything at once: these are always ready."""
        self.loop: VirtualLoop | None = None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys[number] = selectors.SelectorKey(fileobj, number, events, data)
        if events & selectors.EVENT_WRITE:
            self._writers.add(number)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._writers.discard(number)
        return self._keys.pop(number)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj if isinstance(fileobj, int) else fileobj.fileno()]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        self._time.wait(self._has_something, None if timeout is None else max(0.0, timeout), in_loop=True)
        return self._ready() if self._writers or self._readable.ready else []

    def _has_something(self) -> bool:
        """Asked often: whenever anything changes."""
        assert self.loop is not None
        is_readable = not self._readable.ready.isdisjoint(self._keys)
        return is_readable or bool(self._writers) or self.loop.has_work

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        found = []
        for number, key in self._keys.items():
            events = key.events & selectors.EVENT_WRITE
            if number in self._readable.ready:
                events |= key.events & selectors.EVENT_READ
            if events:
                found.append((key, events))
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """Real in everything but its clock and its descriptors."""

    def __init__(self, time: VirtualTime, readable: Readable) -> None:
        self._virtual = time
        selector = _Selector(time, readable)
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self._virtual.time()

    @property
    def has_work(self) -> bool:
        """Whether callbacks are ready: those that came from the events, too."""
        return bool(self._ready)  # type: ignore[attr-defined] # of asyncio's base class

    def _write_to_self(self) -> None:
        """Wake the loop, which may wait for its turn; no real selector is used."""
        self._virtual.wake()
