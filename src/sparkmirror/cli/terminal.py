"""Writes to a terminal or a pipe: status lines with the time that has passed, and aligned tables."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.status import Status
from rich.text import Text

from sparkmirror.domain.printable import printable

_PLAIN_EVERY_S: Final = 5.0


class StatusLines:
    """Prints lines that stay, each with the seconds since the object was made, and updates in between."""

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        plain_every_s: float = _PLAIN_EVERY_S,
    ) -> None:
        """`plain_every_s`: how often an update becomes a line where there is no terminal."""
        self._console = console
        self._plain_every_s = plain_every_s
        self._clock = clock
        self._started = clock()

    def print(self, text: str) -> None:
        elapsed_s = self._clock() - self._started
        self._console.print(
            f"{elapsed_s:5.1f} s  {printable(text)}", highlight=False, markup=False, soft_wrap=True
        )

    @contextmanager
    def updates(self) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows an update: on one line of a terminal, elsewhere every few seconds."""
        if self._console.is_terminal:
            with self._console.status("") as status:
                yield lambda text: _update(status, text)
        else:
            yield self._limited()

    def _limited(self) -> Callable[[str], None]:
        printed_at = self._clock()

        def update(text: str) -> None:
            nonlocal printed_at
            if self._clock() - printed_at >= self._plain_every_s:
                printed_at = self._clock()
                self.print(text)

        return update


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Lines of left-aligned columns, those in `right` right-aligned; never wrapped: scripts read them."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _update(status: Status, text: str) -> None:
    status.update(Text(printable(text)))
