"""`offsets`: where a connector is, and how that is changed (KIP-875)."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from sparkmirror.cli.connectors.asking import (
    DONE,
    NOT_ASKED,
    REFUSED,
    Verb,
    add_verb,
    complain,
    not_empty,
    say,
)
from sparkmirror.cli.connectors.documents import read_offsets
from sparkmirror.cli.connectors.views import View, add_output_argument, show
from sparkmirror.client.connect_rest import ConnectRest

_HELP = """\
Where connectors are in what they read, and how that is changed. They must be STOPPED for a change.

examples:
  sparkmirror connectors offsets show mm2-msc
  sparkmirror connectors offsets show mm2-msc -o json > offsets.json
  sparkmirror connectors stop mm2-msc --wait
  sparkmirror connectors offsets alter mm2-msc offsets.json
  sparkmirror connectors offsets reset mm2-msc
  sparkmirror connectors resume mm2-msc --wait
"""
_SHOW_HELP = "Print the offsets of a connector: for each partition, the last record that is done.\n"
_ALTER_HELP = """\
Give a connector that is stopped other offsets: those of the partitions that are named; null forgets one. The
file, JSON or YAML, has the form that `offsets show -o json` prints:

  {"offsets": [{"partition": {"cluster": "us", "topic": "orders", "partition": 0}, "offset": {"offset": 99}}]}

example:
  sparkmirror connectors offsets alter mm2-msc offsets.json
"""
_RESET_HELP = """\
Let a connector that is stopped forget all its offsets: a mirror begins anew, by default with the oldest
records, and what it has copied before is then there twice.

example:
  sparkmirror connectors offsets reset mm2-msc --yes
"""


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "offsets",
        help="show, alter and reset a connector's offsets",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser = add_verb(actions, Verb("show", "print them", _SHOW_HELP, _show))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    add_output_argument(parser)
    parser = add_verb(actions, Verb("alter", "go on elsewhere", _ALTER_HELP, _alter))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("file", metavar="FILE", help="the offsets (- for standard input)")
    parser = add_verb(actions, Verb("reset", "forget them all", _RESET_HELP, _reset))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("--yes", action="store_true", help="without being asked")


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
    say(f"{arguments.name}: {connect.alter_offsets(arguments.name, offsets)}")
    return DONE


def _reset(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    if not _is_stopped(connect, arguments):
        return REFUSED
    if not arguments.yes:
        if not sys.stdin.isatty():
            complain(arguments.prog, "nobody is there to be asked: --yes resets without")
            return NOT_ASKED
        count = len(connect.offsets(arguments.name))
        sys.stderr.write(
            f"{arguments.name} forgets its offsets of {count} partitions and begins anew. Do it? [y/N] "
        )
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            complain(arguments.prog, "nothing was done")
            return REFUSED
    say(f"{arguments.name}: {connect.reset_offsets(arguments.name)}")
    return DONE


def _is_stopped(connect: ConnectRest, arguments: argparse.Namespace) -> bool:
    """Else says what to do. The API itself looks again, and has the last word."""
    state = connect.status(arguments.name)["connector"]["state"]
    if state != "STOPPED":
        complain(
            arguments.prog,
            f"{arguments.name} is {state}, and its offsets can be changed only while it is STOPPED: "
            f"`sparkmirror connectors stop {arguments.name} --wait` first, `resume` afterwards",
        )
    return state == "STOPPED"


def _keys(maps: Any) -> tuple[str, ...]:
    """Every key that one of the maps has, in the order in which they come up."""
    return tuple(dict.fromkeys(key for each in maps for key in each or ()))


def _cells(values: Mapping[str, Any] | None, keys: tuple[str, ...]) -> list[str]:
    found = values or {}
    cells = [found.get(key, "-") for key in keys]
    return [cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells]
