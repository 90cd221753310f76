"""What `groups explain` and `topics explain` share: flows of a file, explained to people or scripts."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console

from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.mirroring_flows import MirroringFlow, add_flow_argument, mirroring_flows
from sparkmirror.domain.errors import SparkmirrorError

WRONG_USAGE: Final = 2

_Explanation = TypeVar("_Explanation")


def add_explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the mm2.properties of the mirror")
    add_flow_argument(parser)
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="the result's form (table)"
    )


def explained(
    arguments: argparse.Namespace,
    command: str,
    explain: Callable[[MirroringFlow], _Explanation],
    show: Callable[[Console, _Explanation], None],
    to_json: Callable[[_Explanation], Any],
) -> Sequence[_Explanation] | None:
    """What was told, of each flow; None when the file or a flow can't be used, which is said."""
    try:
        flows = mirroring_flows(arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow)
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror {command}: {error}\n")
        return None
    found = [explain(flow) for flow in flows]
    if arguments.output == "json":
        sys.stdout.write(json.dumps([to_json(each) for each in found], indent=2) + "\n")
    else:
        console = Console()
        for each in found:
            show(console, each)
    return found
