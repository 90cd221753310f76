"""Runs commands against a Connect REST API: finds it, calls it, turns errors into messages and exit codes."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.rest_access import add_access_arguments, connected
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable

Connect = Callable[[argparse.Namespace], AbstractContextManager[ConnectRest]]
"""Makes the client of the API that the arguments name."""


class RestCommand(NamedTuple):
    """A command of the REST API; `text` is its description, with examples. `run` returns the exit code."""

    name: str
    help: str
    text: str
    run: Callable[[ConnectRest, argparse.Namespace], int]


def add_rest_command(
    parsers: "argparse._SubParsersAction[argparse.ArgumentParser]", command: RestCommand
) -> argparse.ArgumentParser:
    parser = parsers.add_parser(
        command.name,
        help=command.help,
        description=command.text,
    )
    add_access_arguments(parser)
    parser.set_defaults(run=partial(run, command), prog=parser.prog)
    return parser


def run(command: RestCommand, arguments: argparse.Namespace, connect: Connect = connected) -> int:
    """The command's exit code; its errors are printed."""
    try:
        with connect(arguments) as api:
            return command.run(api, arguments)
    except ConnectRefusedError as error:
        print_error(arguments.prog, error)
        return NOT_FINE
    except (SparkmirrorError, OSError) as error:
        print_error(arguments.prog, error)
        return CANNOT_TELL


def run_for_each(names: Sequence[str], act: Callable[[str], int]) -> int:
    """Call `act` for each name, also when others fail; returns the worst exit code."""
    code = FINE
    for name in names:
        try:
            code = max(code, act(name))
        except ConnectRefusedError as error:
            print_error(name, error)
            code = NOT_FINE
    return code


def print_error(about: str, error: object) -> None:
    """Errors of a worker may have several lines."""
    lines = f"{about}: {error}".splitlines()
    sys.stderr.writelines(f"{printable(line)}\n" for line in lines)


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
