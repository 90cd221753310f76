"""Renders docs/reference.md: every command with its arguments and exit codes, and every metric.

`python -m tests.support.reference_page` writes it.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from sparkmirror.cli.command_list import GROUPS
from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.exit_codes import OF_EVERY_COMMAND, exit_codes
from sparkmirror.metrics.exposition import Written
from sparkmirror.metrics.families import families
from sparkmirror.metrics.mbeans import mbeans
from sparkmirror.metrics.naming import Naming
from sparkmirror.metrics.settings import default_settings
from tests.support.metric_readings import EVERY_CONNECTOR, NODE

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference.md"

_HEAD: Final = """\
# Reference

Every command with its arguments and exit codes, and every metric of `/metrics`. `sparkmirror COMMAND -h` has
examples; [configuration.md](configuration.md) has the options of files, [metrics.md](metrics.md) explains the
metrics.
"""
_CODES: Final = """\
## Exit codes of every command

Unless a command has a meaning of its own:
"""
_METRICS: Final = """\
## Metrics of sparkmirror

Everything ending in `_total` is a counter, the rest are gauges.
"""
_JAVA: Final = """\
## Metrics of Java MirrorMaker 2

Under their default names; [metrics.md](metrics.md) has their meaning and other names.
"""
_LABEL: Final = re.compile(r'(\w+)="')


def rendered() -> str:
    """The text of the page."""
    (commands,) = build_parser()._subparsers._group_actions  # type: ignore[union-attr]
    assert isinstance(commands, argparse._SubParsersAction)
    sections = [line for names in GROUPS.values() for name in names for line in _command(commands, name)]
    codes = _list(OF_EVERY_COMMAND)
    return "\n".join((_HEAD, _CODES, *codes, *sections, _METRICS, *_ours(), "", _JAVA, *_javas(), ""))


def _command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str) -> Iterator[str]:
    (summary,) = (action.help for action in commands._choices_actions if action.dest == name)
    yield f"## `sparkmirror {name}`\n\n{summary}\n"
    codes = {code: text for code, text in exit_codes(name).items() if OF_EVERY_COMMAND.get(code) != text}
    if codes:
        yield from ["Exit codes:\n", *_list(codes)]
    yield from _arguments(commands.choices[name])


def _list(codes: Mapping[int, str]) -> list[str]:
    return [*(f"- {code}: {text}" for code, text in codes.items()), ""]


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    verbs = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    rows = [_row(parser, action) for action in actions if action.dest != "help" and action not in verbs]
    if rows:
        yield from ["| argument | default | |", "|---|---|---|", *rows, ""]
    for action in verbs:
        about = {each.dest: each.help for each in action._choices_actions}
        for verb, of_verb in action.choices.items():
            yield f"### `{' '.join(of_verb.prog.split())}`\n"
            if about.get(verb):
                yield f"{about[verb]}\n"
            yield from _arguments(of_verb)


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter, options = parser._get_formatter(), ", ".join(action.option_strings)
    if options:
        values = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
        name = options if action.nargs == 0 else f"{options} {values}"
    else:
        name = formatter._format_args(action, formatter._get_default_metavar_for_positional(action))
    text, default = formatter._expand_help(action) if action.help else "", _default(action)
    for said in (f" ({default})", f" (default: {default})"):
        text = text.removesuffix(said)
    return f"| `{_cell(name)}` | {default} | {_cell(text)} |"


def _default(action: argparse.Action) -> str:
    match action.default:
        case None | bool() | argparse.SUPPRESS:
            return ""
        case tuple(address):
            return ":".join(map(str, address))
        case list(names):
            return " ".join(map(str, names))
        case value:
            return str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _ours() -> Iterator[str]:
    rows = ((each.name, ", ".join(each.labels), each.help) for each in families(EVERY_CONNECTOR, NODE))
    return _table("name | labels | value", rows)


def _javas() -> Iterator[str]:
    every = Naming(default_settings().name).metrics(mbeans(EVERY_CONNECTOR, NODE))
    return _table("name | labels", sorted({(each.name, _labels(each)) for each in every}))


def _labels(metric: Written) -> str:
    return ", ".join(_LABEL.findall(metric.samples[0][0]))


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {head} |\n{'|---' * (head.count('|') + 1)}|"
    for name, *cells in rows:
        yield f"| {' | '.join((f'`{name}`', *map(_cell, cells)))} |"


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
