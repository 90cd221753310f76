"""Selects the flows of an mm2.properties that mirror topics, and explains each of them as a table or JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.reachability import clusters_of, require_clusters
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.settings.configured import ConfiguredFlow, MirroringFlow

_Explanation = TypeVar("_Explanation")


def add_flow_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--flow", action="append", metavar="A->B", help="only this flow; may be given more than once"
    )


def mirroring_flows(
    file: Path, flows: Iterable[ConfiguredFlow], wanted: Sequence[str] | None = None
) -> list[MirroringFlow]:
    """Without flows that only emit heartbeats. Raises SparkmirrorError if none is left, or one is unknown."""
    found = [MirroringFlow(flow, flow.source) for flow in flows if flow.source is not None]
    unknown = sorted(set(wanted or ()) - {flow.name for flow in found})
    if unknown or not found:
        missing = f"no flow {', '.join(unknown)}" if unknown else "no flow"
        names = ", ".join(flow.name for flow in found) or "none"
        raise SparkmirrorError(f"{file} has {missing} that mirrors topics (it has: {names})")
    return [flow for flow in found if wanted is None or flow.name in wanted]


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
    """Explain each flow and print it. None, with an error message, when the file or a flow can't be used."""
    try:
        flows = mirroring_flows(arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow)
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror {command}: {printable(str(error))}\n")
        return None
    require_clusters(clusters_of(flow.settings for flow in flows))
    found = [explain(flow) for flow in flows]
    if arguments.output == "json":
        sys.stdout.write(json.dumps([to_json(each) for each in found], indent=2) + "\n")
    else:
        console = Console()
        for each in found:
            show(console, each)
    return found
