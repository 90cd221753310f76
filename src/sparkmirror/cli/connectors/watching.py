"""`--watch`: a table that is refreshed until Ctrl-C; for a file or a pipe, lines of what has changed."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.connectors.asking import DONE, REFUSED, complain
from sparkmirror.cli.connectors.views import View, printable
from sparkmirror.cli.signals import interrupt_on_signals
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectUnreachableError
from sparkmirror.config.conversion.yaml_section import yaml_text

_EVERY_S: Final = 2

Tell = Callable[[View], None]


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch", action="store_true", help="look again and again until Ctrl-C; to a pipe, only what changes"
    )
    parser.add_argument(
        "--every", type=positive, default=_EVERY_S, metavar="SECONDS", help="how often (%(default)s)"
    )


def watch(look: Callable[[], View], arguments: argparse.Namespace) -> int:
    """Until a signal; whether all was well at the last look, as an exit code. The first may raise."""
    interrupt_on_signals()
    seen = look()
    is_well = seen.is_well
    try:
        if arguments.output == "table" and sys.stdout.isatty():
            with Live(seen.text(), console=Console(), auto_refresh=False) as live:
                while True:
                    time.sleep(arguments.every)
                    found, trouble = _looked(look)
                    seen = found or seen
                    is_well = found is not None and found.is_well
                    live.update(_with_trouble(seen.text(), trouble), refresh=True)
        tell = {"json": _tell_json, "yaml": _tell_yaml}.get(arguments.output, Changes().tell)
        tell(seen)
        while True:
            time.sleep(arguments.every)
            found, trouble = _looked(look)
            is_well = found is not None and found.is_well
            if found is None:
                complain(arguments.prog, trouble)
            else:
                tell(found)
    except KeyboardInterrupt:
        return DONE if is_well else REFUSED


class Changes:
    """Says on standard output, with the time, which rows are new, have changed, or are gone."""

    def __init__(self, clock: Callable[[], str] = lambda: time.strftime("%H:%M:%S")) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, ...], tuple[str, ...]] = {}

    def tell(self, view: View) -> None:
        now = {tuple(row[: view.key]): tuple(row) for row in view.rows}
        for key, row in now.items():
            if self._seen.get(key) != row:
                self._say(row)
        for key in self._seen.keys() - now.keys():
            self._say((*key, "is gone"))
        self._seen = now

    def _say(self, row: tuple[str, ...]) -> None:
        sys.stdout.write("  ".join((self._clock(), *map(printable, row))) + "\n")
        sys.stdout.flush()


def _looked(look: Callable[[], View]) -> tuple[View | None, Exception | None]:
    """A worker that is away for a moment, as in a rolling restart, ends nothing."""
    try:
        return look(), None
    except (ConnectRefusedError, ConnectUnreachableError) as error:
        return None, error


def _with_trouble(text: Text, trouble: Exception | None) -> Text:
    return text if trouble is None else text.append(f"\n{trouble}", style="red")


def _tell_json(view: View) -> None:
    sys.stdout.write(json.dumps(view.content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _tell_yaml(view: View) -> None:
    sys.stdout.write("---\n" + yaml_text(view.content))
    sys.stdout.flush()
