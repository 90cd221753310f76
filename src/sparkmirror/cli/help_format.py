"""Formats help for the width of the terminal: fills paragraphs, keeps examples, splits those too long."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

_WIDTH_MAX: Final = 110
_TWO_COLUMNS: Final = re.compile(r"(?P<indent> +)(?P<left>\S+(?: \S+)*)(?: {2,}(?P<right>\S.*))?")
_CONTINUED_FROM: Final = 16
"""A line that is indented as far continues the right column of the line before."""
_NARROW_MAX: Final = 32
"""A right column that begins further right would be too narrow."""
_BELOW: Final = 6
"""The indentation, behind that of the left column, of a right column that needs its own line."""
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_COMMENT: Final = "# "
_COMMAND: Final = re.compile(r"(?:[^|&]+(?:\||&&) )?sparkmirror ")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions are paragraphs, and blocks of indented lines: two columns of a thing and what it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # argparse's one method for this; RawDescriptionHelpFormatter overrides it too.
        return "\n".join(f"{indent}{line}".rstrip() for line in filled(text, width))


def help_width() -> int:
    return min(_WIDTH_MAX, shutil.get_terminal_size().columns) - 2


def filled(text: str, width: int) -> Iterator[str]:
    """The lines of a text that fit into `width`, words that are longer aside."""
    for kind, lines in groupby(text.rstrip("\n").split("\n"), key=_kind):
        if kind == "empty":
            yield from lines
        elif kind == "prose":
            yield from textwrap.wrap(" ".join(lines), width, break_long_words=False, break_on_hyphens=False)
        else:
            yield from _block(list(lines), width)


def _kind(line: str) -> str:
    if not line.strip():
        return "empty"
    if line.startswith(" "):
        return "block"
    return f"heading {line}" if line.endswith(":") and len(line) < _CONTINUED_FROM * 3 else "prose"


def _block(lines: list[str], width: int) -> Iterator[str]:
    if all(len(line) <= width for line in lines):
        yield from lines
        return
    rows = list(_joined(lines))
    column = max((len(indent) + len(left) for indent, left, right in rows if right), default=0) + 2
    for indent, left, right in rows:
        below = len(indent) + _BELOW
        if right and column <= _NARROW_MAX:
            yield from _wrapped(right, width, f"{indent}{left}".ljust(column), column)
            continue
        if len(indent + left) <= width:
            yield indent + left
        elif _COMMAND.match(left):
            yield from _continued(left, width, indent, below)
        else:
            yield from _wrapped(left, width, indent, below)
        if right:
            yield from _wrapped(right, width, " " * below, below)


def _continued(command: str, width: int, first: str, rest: int) -> list[str]:
    """Break a command as a shell reads it: outside of quotes, with a backslash."""
    whole = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), command)
    lines = _wrapped(whole, width - 2, first, rest)
    return " \\\n".join(lines).replace("\0", " ").split("\n")


def _joined(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each line's indent and columns, with what later lines add to its right column."""
    before: tuple[str, str, str] | None = None
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        if before is not None and len(indent) >= _CONTINUED_FROM:
            before = before[0], before[1], f"{before[2]} {line.strip()}".strip()
            continue
        if before is not None:
            yield before
        found = _TWO_COLUMNS.fullmatch(line.rstrip())
        assert found is not None  # it is indented, and not empty
        before = found["indent"], found["left"], found["right"] or ""
    if before is not None:
        yield before


def _wrapped(text: str, width: int, first: str, rest: int) -> list[str]:
    """Break a text; each line of a comment begins as one."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * rest + (_COMMENT if text.startswith(_COMMENT) else ""),
        break_long_words=False,
        break_on_hyphens=False,
    )
