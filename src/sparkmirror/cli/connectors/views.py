"""What a command has found: aligned columns for people, JSON or YAML as the API says it for programs."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from sparkmirror.config.conversion.yaml_section import yaml_text
from sparkmirror.config.properties import HIDDEN, is_sensitive

_STYLES: Final = {"FAILED": "red", "RUNNING": "green", "UNASSIGNED": "yellow", "RESTARTING": "yellow"}


@dataclass(frozen=True, slots=True)
class View:
    """`content` is for programs. The first `key` columns tell rows apart; notes stand below them."""

    content: Any
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    key: int = 1
    notes: Sequence[str] = ()
    is_well: bool = True

    def lines(self) -> list[str]:
        """As wide as it has to be."""
        table = [[column.upper() for column in self.columns], *self._cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table
        ]
        return [*(line.rstrip() for line in lines), *map(printable, self.notes)]

    def text(self) -> Text:
        """The lines, with states in colour."""
        text = Text("\n".join(self.lines()), no_wrap=True)
        for word, style in _STYLES.items():
            text.highlight_words([word], style)
        return text

    def _cells(self) -> Iterator[list[str]]:
        for row in self.rows:
            yield [printable(cell) for cell in row]


def add_output_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="the result's form (table)"
    )


def show(view: View, output: str) -> None:
    """On standard output."""
    match output:
        case "json":
            sys.stdout.write(json.dumps(view.content, indent=2, ensure_ascii=False) + "\n")
        case "yaml":
            sys.stdout.write(yaml_text(view.content))
        case _ if sys.stdout.isatty():
            Console().print(view.text(), soft_wrap=True)
        case _:
            sys.stdout.writelines(f"{line}\n" for line in view.lines())


def masked(config: Mapping[str, str], *, show_secrets: bool = False) -> dict[str, str]:
    """What may be seen of a connector's settings. Placeholders of config providers are no secrets."""
    return {
        key: value if show_secrets or not _is_secret(key, value) else HIDDEN for key, value in config.items()
    }


def _is_secret(key: str, value: str | None) -> bool:
    is_placeholder = value is not None and value.startswith("${") and value.find("}") == len(value) - 1
    return bool(value) and is_sensitive(key) and not is_placeholder


def printable(text: str) -> str:
    """On one line, and without what a terminal would take for a command."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
