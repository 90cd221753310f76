"""Prints explanations of topics and groups, flow by flow: as tables, or as JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console

from sparkmirror.cli.arguments import mirror_file
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.mirroring_flows import add_flow_argument, mirroring_flows
from sparkmirror.cli.reachability import reachable
from sparkmirror.cli.terminal import aligned
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.explanation import Explanation
from sparkmirror.domain.printable import printable
from sparkmirror.settings.configured import MirroringFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file


class Columns(NamedTuple):
    """Headings of the numbers of a partition by their names in JSON, those of its source first."""

    source: Mapping[str, str]
    target: Mapping[str, str]


class Explained(NamedTuple):
    """An explanation and what is shown around it; `json` is put before and among its own keys."""

    explanation: Explanation
    title: str
    json: Mapping[str, Any]
    below: Callable[[Console], None] = lambda _: None
    """Prints what follows the partitions."""


def add_explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=mirror_file, metavar="FILE", help="the mm2.properties of the mirror")
    add_flow_argument(parser)
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="the result's form (table)"
    )


def explain_flows(
    arguments: argparse.Namespace,
    command: str,
    columns: Columns,
    explain: Callable[[MirroringFlow], Explained],
) -> int:
    """Explain each flow and print it; returns the exit code."""
    try:
        flows = mirroring_flows(arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow)
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror {command}: {printable(str(error))}\n")
        return CANNOT_TELL
    left = reachable(flows, command)
    found = [explain(flow) for flow in left]
    if arguments.output == "json":
        sys.stdout.write(json.dumps([to_json(each) for each in found], indent=2) + "\n")
    else:
        console = Console()
        for each in found:
            show(console, each, columns)
    if not all(each.explanation.is_fine for each in found):
        return NOT_FINE
    return FINE if len(left) == len(flows) else CANNOT_TELL


def to_json(found: Explained) -> dict[str, Any]:
    return {**found.explanation.to_json(), **found.json}


def show(console: Console, found: Explained, columns: Columns) -> None:
    explanation = found.explanation
    console.print(found.title, style="bold", highlight=False, markup=False, soft_wrap=True)
    for line in explanation.obstacles:
        print_line(console, f"✗ {line}")
    for rule in explanation.rules:
        print_line(console, f"{_mark(is_fine=rule.passes)} {rule.rule}: {rule.why}")
    for line in explanation.notes:
        print_line(console, line)
    if explanation.partitions:
        here, there = len(columns.source), len(columns.target)
        print_table(
            console, _rows(explanation, columns), {*range(1, here + 1), *range(here + 2, here + there + 2)}
        )
    for partition in explanation.partitions:
        print_line(console, f"{_mark(is_fine=partition.is_fine)} {partition.source}: {partition.why}")
    found.below(console)


def print_line(console: Console, line: str) -> None:
    console.print(f"  {printable(line)}".rstrip(), highlight=False, markup=False, soft_wrap=True)


def print_table(console: Console, rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    for line in ("", *aligned(rows, right), ""):
        print_line(console, line)


def _mark(*, is_fine: bool) -> str:
    return "✓" if is_fine else "✗"


def _rows(explanation: Explanation, columns: Columns) -> list[tuple[str, ...]]:
    flow = explanation.flow
    headings = (f"on {flow.source}", *columns.source.values(), f"on {flow.target}", *columns.target.values())
    return [
        headings,
        *(
            (
                str(each.source),
                *(_number(each.numbers[name]) for name in columns.source),
                str(each.target),
                *(_number(each.numbers[name]) for name in columns.target),
            )
            for each in explanation.partitions
        ),
    ]


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)
