"""Prints a command's result: as aligned columns, or the API's content as JSON."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from sparkmirror.cli.exit_codes import FINE
from sparkmirror.cli.terminal import aligned
from sparkmirror.domain.printable import printable, printable_json

_STYLES: Final = {"FAILED": "red", "RUNNING": "green", "UNASSIGNED": "yellow", "RESTARTING": "yellow"}


@dataclass(frozen=True, slots=True)
class View:
    """`content` is for JSON; notes follow the table.

    `code` is the exit code of a command that shows it; `causes` come before everything else.
    """

    content: Any
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    code: int = FINE
    causes: Sequence[str] = ()

    def lines(self) -> list[str]:
        return [
            *map(printable, self.causes),
            *aligned([[column.upper() for column in self.columns], *self.rows]),
            *map(printable, self.notes),
        ]

    def text(self) -> Text:
        """The lines, with states in colour."""
        text = Text("\n".join(self.lines()))
        for word, style in _STYLES.items():
            text.highlight_words([word], style)
        return text


def add_output_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="the result's form (table)"
    )


def show(view: View, output: str) -> None:
    """Print a view on standard output."""
    match output:
        case "json":
            sys.stdout.write(printable_json(view.content, indent=2) + "\n")
        case _ if sys.stdout.isatty():
            Console().print(view.text(), soft_wrap=True)
        case _:
            sys.stdout.writelines(f"{line}\n" for line in view.lines())
