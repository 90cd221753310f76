"""Says what the demo is doing, and since when: lines that stay, and news of something long that do not."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.status import Status
from rich.text import Text

_PLAIN_EVERY_S: Final = 5.0


class Narrator:
    """Its clock starts with it. Passing news takes one line of a terminal, or a line every few seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._started = clock()

    def say(self, text: str) -> None:
        elapsed_s = self._clock() - self._started
        self._console.print(f"{elapsed_s:5.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self) -> Iterator[Callable[[str], None]]:
        """Gives a function that takes the news of what is being waited for."""
        if self._console.is_terminal:
            with self._console.status("") as status:
                yield lambda news: _update(status, news)
        else:
            yield self._now_and_then()

    def _now_and_then(self) -> Callable[[str], None]:
        said_at = self._clock()

        def tell(news: str) -> None:
            nonlocal said_at
            if self._clock() - said_at >= _PLAIN_EVERY_S:
                said_at = self._clock()
                self.say(news)

        return tell


def _update(status: Status, news: str) -> None:
    status.update(Text(news))
