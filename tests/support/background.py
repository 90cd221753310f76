"""Does something in a thread for as long as a block lasts."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


@contextmanager
def in_background(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """`work` ends soon after its event is set; the block's end waits for that."""
    enough = threading.Event()
    thread = threading.Thread(target=work, args=(enough,))
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


class BackgroundWatch(ABC):
    """Watches something in a thread for as long as a block lasts, and has what it found."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _watch(self) -> None:
        """Watch until `_stop` is set."""
