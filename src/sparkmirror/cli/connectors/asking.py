"""What every command does that asks a Connect REST API: find it, ask, turn what fails into an exit code."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sparkmirror.cli.connectors.views import printable
from sparkmirror.cli.contexts import add_access_arguments, connected
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest
from sparkmirror.domain.errors import SparkmirrorError

DONE: Final = 0
REFUSED: Final = 1
"""The API said no, or something is not as it has to be."""
NOT_ASKED: Final = 2
"""Wrong usage, a file that can't be used, or nobody answers."""

EXIT_CODES: Final = """\
exit codes: 0 done, 1 the API refuses it, or something is not as it has to be, 2 wrong usage, a file that
can't be used, or no Connect REST API that answers
"""


class Verb(NamedTuple):
    """A command that asks; `text` is its description, with examples. `act` returns the exit code."""

    name: str
    help: str
    text: str
    act: Callable[[ConnectRest, argparse.Namespace], int]


def add_verb(
    parsers: "argparse._SubParsersAction[argparse.ArgumentParser]", verb: Verb
) -> argparse.ArgumentParser:
    parser = parsers.add_parser(
        verb.name,
        help=verb.help,
        description=f"{verb.text}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_access_arguments(parser)
    parser.set_defaults(run=lambda arguments: _ask(verb, arguments), prog=parser.prog)
    return parser


def not_empty(text: str) -> str:
    """An argument's type: a path without the name would mean something else."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it can't be empty")
    return text


def for_each(names: Sequence[str], act: Callable[[str], int]) -> int:
    """Do it to each, whatever becomes of the others; the worst exit code."""
    code = DONE
    for name in names:
        try:
            code = max(code, act(name))
        except ConnectRefusedError as error:
            complain(name, error)
            code = REFUSED
    return code


def complain(about: str, error: object) -> None:
    """Errors of a worker have several lines now and then."""
    lines = f"{about}: {error}".splitlines()
    sys.stderr.writelines(f"{printable(line)}\n" for line in lines)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _ask(verb: Verb, arguments: argparse.Namespace) -> int:
    try:
        with connected(arguments) as connect:
            return verb.act(connect, arguments)
    except ConnectRefusedError as error:
        complain(arguments.prog, error)
        return REFUSED
    except (SparkmirrorError, OSError) as error:
        complain(arguments.prog, error)
        return NOT_ASKED
