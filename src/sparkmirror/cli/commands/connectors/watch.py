"""Implements `--watch`: refreshes a table until Ctrl-C; to a file or a pipe, prints changed rows."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.commands.connectors.rest_commands import print_error
from sparkmirror.cli.commands.connectors.views import View
from sparkmirror.cli.exit_codes import CANNOT_TELL
from sparkmirror.cli.process import interrupt_on_signals
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectUnreachableError
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.printable import printable, printable_json

_EVERY_S: Final = 2


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch", action="store_true", help="poll until Ctrl-C; to a pipe, print only changes"
    )
    parser.add_argument(
        "--every", type=positive, default=_EVERY_S, metavar="SECONDS", help="how often (%(default)s)"
    )


def watch(poll: Callable[[], View], arguments: argparse.Namespace) -> int:
    """Poll until a signal; the exit code is that of the last poll. The first poll may raise."""
    interrupt_on_signals()
    seen = poll()
    code = seen.code
    try:
        if arguments.output == "table" and sys.stdout.isatty():
            with Live(seen.text(), console=Console(), auto_refresh=False) as live:
                while True:
                    time.sleep(arguments.every)
                    found, error = _polled(poll)
                    seen = found or seen
                    code = CANNOT_TELL if found is None else found.code
                    live.update(_with_error(seen.text(), error), refresh=True)
        output = _print_json if arguments.output == "json" else Changes().print
        output(seen)
        while True:
            time.sleep(arguments.every)
            found, error = _polled(poll)
            code = CANNOT_TELL if found is None else found.code
            if found is None:
                print_error(arguments.prog, error)
            else:
                output(found)
    except KeyboardInterrupt:
        return code


class Changes:
    """Prints rows that are new, have changed, or are gone, with the time."""

    def __init__(self, clock: Callable[[], str] = lambda: time.strftime("%H:%M:%S")) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, ...], tuple[str, ...]] = {}

    def print(self, view: View) -> None:
        now = {tuple(row[: view.key]): tuple(row) for row in view.rows}
        for key, row in now.items():
            if self._seen.get(key) != row:
                self._print_row(row)
        for key in self._seen.keys() - now.keys():
            self._print_row((*key, "is gone"))
        self._seen = now

    def _print_row(self, row: tuple[str, ...]) -> None:
        sys.stdout.write("  ".join((self._clock(), *map(printable, row))) + "\n")
        sys.stdout.flush()


def _polled(poll: Callable[[], View]) -> tuple[View | None, Exception | None]:
    """Poll once.

    A worker that is unreachable for a moment, as in a rolling restart, does not end the watch.
    """
    try:
        return poll(), None
    except (ConnectRefusedError, ConnectUnreachableError, KafkaError) as error:
        return None, error


def _with_error(text: Text, error: Exception | None) -> Text:
    return text if error is None else text.append(f"\n{error}", style="red")


def _print_json(view: View) -> None:
    sys.stdout.write(printable_json(view.content) + "\n")
    sys.stdout.flush()
