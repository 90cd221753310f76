"""Defines the commands of `sparkmirror`, runs one, and turns its errors into one line and an exit code."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from sparkmirror import __version__
from sparkmirror.cli.command_list import COMMANDS, MODULES, overview, suggestion, usage_hint
from sparkmirror.cli.exit_codes import CANNOT_TELL, NOT_FINE, exit_codes, paragraph
from sparkmirror.cli.help_format import HelpFormatter, filled, help_width
from sparkmirror.cli.logging import configure_logging
from sparkmirror.domain.errors import ConfigError, KafkaError, NotInstalledError, SparkmirrorError
from sparkmirror.domain.printable import printable

_CANNOT_BEGIN: Final = (ConfigError, NotInstalledError, KafkaError)
_ALL_COMMANDS: Final = "completion"
"""The command whose module needs the parsers of all."""


def run_command(words: Sequence[str]) -> int:
    """Run one command and return its exit code. argparse itself exits after --help and on wrong usage."""
    first = words[0] if words else None
    if first is None:
        sys.stderr.write(overview())
        return CANNOT_TELL
    if first == "help" and len(words) > 1:
        first, words = words[1], [*words[1:], "--help"]
    if first in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if first not in COMMANDS and not first.startswith("-"):
        sys.stderr.write(f"sparkmirror: {suggestion(first)}\n")
        return CANNOT_TELL
    arguments = build_parser(_modules(first)).parse_args(words)
    configure_logging(arguments.log_format, level=arguments.log_level)
    try:
        code = int(arguments.run(arguments))
    except (SparkmirrorError, OSError) as error:  # a folder that can't be written, for example
        sys.stderr.write(f"sparkmirror: {printable(str(error))}\n")
        return CANNOT_TELL if isinstance(error, _CANNOT_BEGIN) else NOT_FINE
    assert code in exit_codes(first), f"{first} ends with {code}, which its help does not name"
    return code


def _modules(command: str) -> Sequence[str]:
    if command == _ALL_COMMANDS:
        return MODULES
    return [COMMANDS[command].module] if command in COMMANDS else []


def build_parser(modules: Sequence[str] = MODULES) -> argparse.ArgumentParser:
    """Build the parser of every command and its arguments, or of those of some modules.

    A command's module has `add_parser(subparsers)`, which sets `run`: arguments in, exit code out. It may
    also set `usage_exit_code` and take `--log-format`.
    """
    parser = _Parser(prog="sparkmirror")
    parser.add_argument("--version", action="version", version=f"sparkmirror {__version__}")
    parser.set_defaults(log_format="text", log_level="info")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, action=_Commands)
    for module in modules:
        import_module(f"sparkmirror.cli.commands.{module}").add_parser(subparsers)
    return parser


class _Parser(argparse.ArgumentParser):
    """Exits on wrong usage with the command's own code, and adds the exit codes to each command's help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _formatter, **options})

    def format_help(self) -> str:
        text, (_, *words) = super().format_help(), self.prog.split()
        return "\n".join([text, *filled(paragraph(words[0]), help_width()), ""]) if words else text

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments here: argparse leaves them to the parent, which has another code."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        hint = usage_hint(self.prog.partition(" ")[2], message)
        message += f": {hint}" if hint else ""
        code = self.get_default("usage_exit_code")
        self.exit(CANNOT_TELL if code is None else code, f"{self.prog}: {message}\n")


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 - argparse's only name for it
    """Takes the line about each command from the list of all."""

    def add_parser(self, name: str, **options: Any) -> Any:
        return super().add_parser(name, **{**options, "help": COMMANDS[name].help})


def _formatter(prog: str) -> HelpFormatter:
    return HelpFormatter(prog, width=help_width())
