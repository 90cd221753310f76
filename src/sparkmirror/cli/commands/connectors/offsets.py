"""Shows, alters and resets the offsets of connectors (KIP-875): the command `offsets`."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from sparkmirror.cli.arguments import not_empty
from sparkmirror.cli.commands.connectors.input_files import read_offsets
from sparkmirror.cli.commands.connectors.rest_commands import (
    DONE,
    NOT_SENT,
    REFUSED,
    RestCommand,
    add_rest_command,
    print_error,
    print_line,
)
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.cli.terminal import confirmed
from sparkmirror.client.connect_rest import ConnectRest

_HELP = """\
Show the offsets of connectors, or change them; a connector must be STOPPED for a change.

examples:
  sparkmirror connectors offsets show mm2-msc
  sparkmirror connectors offsets show mm2-msc -o json > offsets.json
  sparkmirror connectors stop mm2-msc --wait
  sparkmirror connectors offsets alter mm2-msc offsets.json
  sparkmirror connectors offsets reset mm2-msc
  sparkmirror connectors resume mm2-msc --wait
"""
_SHOW_HELP = "Print the offsets of a connector: for each partition, the last record that was copied.\n"
_ALTER_HELP = """\
Change the offsets of a stopped connector, for the partitions that are named; null removes an offset. The
file, JSON or YAML, has the format of `offsets show -o json`:

  {"offsets": [{"partition": {"cluster": "us", "topic": "orders", "partition": 0}, "offset": {"offset": 99}}]}

example:
  sparkmirror connectors offsets alter mm2-msc offsets.json
"""
_RESET_HELP = """\
Remove all offsets of a stopped connector: a mirror starts again, by default with the oldest records, and
records that it has copied before are then duplicated.

example:
  sparkmirror connectors offsets reset mm2-msc --yes
"""


def add_commands(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "offsets",
        help="show, alter and reset a connector's offsets",
        description=_HELP,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser = add_rest_command(actions, RestCommand("show", "print them", _SHOW_HELP, _show))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    add_output_argument(parser)
    parser = add_rest_command(actions, RestCommand("alter", "change them", _ALTER_HELP, _alter))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("file", metavar="FILE", help="the offsets (- for standard input)")
    parser = add_rest_command(actions, RestCommand("reset", "remove them all", _RESET_HELP, _reset))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("--yes", action="store_true", help="don't ask for confirmation")


def _show(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    found = connect.offsets(arguments.name)
    partition_keys = _keys(each["partition"] for each in found)
    offset_keys = _keys(each["offset"] for each in found)
    rows = [
        (*_cells(each["partition"], partition_keys), *_cells(each["offset"], offset_keys)) for each in found
    ]
    columns = (*partition_keys, *offset_keys) or ("partition", "offset")
    show(View({"offsets": found}, columns, sorted(rows), len(partition_keys)), arguments.output)
    return DONE


def _alter(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    offsets = read_offsets(arguments.file)
    if not _is_stopped(connect, arguments):
        return REFUSED
    print_line(f"{arguments.name}: {connect.alter_offsets(arguments.name, offsets)}")
    return DONE


def _reset(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    if not _is_stopped(connect, arguments):
        return REFUSED
    if not arguments.yes:
        if not sys.stdin.isatty():
            print_error(arguments.prog, "standard input is no terminal: confirm with --yes")
            return NOT_SENT
        count = len(connect.offsets(arguments.name))
        if not confirmed(
            f"{arguments.name} loses its offsets of {count} partitions and starts again. Reset?"
        ):
            print_error(arguments.prog, "nothing was changed")
            return REFUSED
    print_line(f"{arguments.name}: {connect.reset_offsets(arguments.name)}")
    return DONE


def _is_stopped(connect: ConnectRest, arguments: argparse.Namespace) -> bool:
    """If not, print what to do. The API itself checks again."""
    state = connect.status(arguments.name)["connector"]["state"]
    if state != "STOPPED":
        print_error(
            arguments.prog,
            f"{arguments.name} is {state}, and its offsets can be changed only while it is STOPPED: "
            f"`sparkmirror connectors stop {arguments.name} --wait` first, `resume` afterwards",
        )
    return state == "STOPPED"


def _keys(maps: Any) -> tuple[str, ...]:
    """Every key of the maps, in order of appearance."""
    return tuple(dict.fromkeys(key for each in maps for key in each or ()))


def _cells(values: Mapping[str, Any] | None, keys: tuple[str, ...]) -> list[str]:
    found = values or {}
    cells = [found.get(key, "-") for key in keys]
    return [cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells]
