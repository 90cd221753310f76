"""Defines `sparkmirror plan`: prints the plan that a mirror would follow."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.connectors.input_files import read_file
from sparkmirror.cli.contexts import add_access_arguments, connected
from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.plan.report import flow_lines, summary
from sparkmirror.cli.printable import printable
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest, ConnectUnreachableError
from sparkmirror.config.conversion.yaml_section import yaml_text
from sparkmirror.config.properties import read_properties
from sparkmirror.connect.connector_configs import ConnectorSettings
from sparkmirror.connect.worker_file import worker_file
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.setup.plan.flow_plan import FlowPlan, Rate
from sparkmirror.setup.plan.flow_plan_json import from_json, to_json
from sparkmirror.setup.plan.flow_planning import DEFAULT_RATE, plan_flow, plan_source
from sparkmirror.setup.plan.plan_findings import findings_between

_NOTHING_BLOCKS = 0
_BLOCKED = 2
_UNREACHABLE = 3
_SERVER_ERRORS = 500
_PROG = "sparkmirror plan"
_SOURCE_CLASS = "MirrorSourceConnector"
_STYLES = {"+": "green", "~": "yellow", "-": "red", "✗": "bold red", "!": "yellow"}

_EXAMPLES = f"""\
Reads both clusters of every flow and prints, like a tool for database migrations, what a mirror would do with
this configuration: topics to create (+), configs to alter (~), what to delete (-), partitions and tasks, what
there is to copy, which topics are left out and why, and what blocks the mirror. Changes and creates nothing
on any cluster, not even the mirror's own topics; brokers validate what would be created. A mirror may be
running: then the plan shows what is left for it to do.

Numbers of records are differences of offsets, so they are upper limits. The time to copy is estimated by the
rate that the mirror has reached while it was behind, or by --rate
({DEFAULT_RATE.bytes_s / 1e6:.0f} MB/s where it never was behind).

examples:
  sparkmirror plan mm2.properties                               every flow of the file
  sparkmirror plan mm2.properties --clusters B --detail         the flows into B, every line
  sparkmirror plan mm2.properties --rate 30000000 -o json       at 30 MB/s; for programs
  sparkmirror plan mm2-msc.json --worker connect-distributed.properties
                                                                a connector, before it is put on a worker
  sparkmirror plan --url http://connect-1:8083 [NAME …]         connectors of a running sparkmirror worker

exit codes: 0 nothing blocks, whether there is something to do or not, 2 something blocks, wrong usage, or an
unusable file, 3 a cluster, or a worker, can't be reached
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "plan",
        description="Show what a mirror would do, and change nothing.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="FILE | NAME",
        help="an mm2.properties, a Strimzi resource, or a connector's JSON (with --worker); with --url or "
        "--context, names of connectors (default: every MirrorSourceConnector)",
    )
    add_access_arguments(parser)
    parser.add_argument(
        "--worker",
        type=Path,
        metavar="FILE",
        help="the properties of the worker that will run the connector",
    )
    parser.add_argument("--clusters", nargs="+", metavar="ALIAS", help="only the flows into these clusters")
    parser.add_argument(
        "--rate", type=positive, metavar="BYTES", help="the rate to expect, in bytes per second"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="the plan's form (table)"
    )
    parser.add_argument("--detail", action="store_true", help="show every line, topic and partition")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        plans, unreachable = _planned(arguments)
    except (KafkaError, ConnectUnreachableError) as error:
        return _fail(error, _UNREACHABLE)
    except ConnectRefusedError as error:
        return _fail(error, _UNREACHABLE if error.status >= _SERVER_ERRORS else _BLOCKED)
    except (SparkmirrorError, OSError) as error:
        return _fail(error, _BLOCKED)
    _show(plans, arguments.output, detail=arguments.detail)
    for line in unreachable:
        _fail(line, _UNREACHABLE)
    if unreachable:
        return _UNREACHABLE
    return _BLOCKED if any(plan.is_blocked for plan in plans) else _NOTHING_BLOCKS


def _planned(arguments: argparse.Namespace) -> tuple[list[FlowPlan], list[str]]:
    """The plans, and the errors of flows that could not be planned."""
    if arguments.url is not None or arguments.context is not None:
        with connected(arguments) as connect:
            return _of_worker(connect, arguments.names), []
    if len(arguments.names) != 1:
        raise SparkmirrorError("one FILE is required, or --url, or --context")
    file = Path(arguments.names[0])
    rate = None if arguments.rate is None else Rate(arguments.rate, "--rate")
    if arguments.worker is not None:
        return [_of_connector(file, arguments.worker, rate)], []
    return _of_file(file, arguments.clusters, rate)


def _of_file(
    file: Path, into_clusters: Sequence[str] | None, rate: Rate | None
) -> tuple[list[FlowPlan], list[str]]:
    plans, unreachable = [], []
    for flow in read_mirror_maker_file(file, into_clusters).flows:
        try:
            plans.append(plan_flow(flow, rate))
        except KafkaError as error:
            unreachable.append(f"{flow.flow}: {error}")
    between = findings_between(plans)
    return [
        replace(plan, findings=(*found, *plan.findings)) for plan, found in zip(plans, between, strict=True)
    ], unreachable


def _of_connector(file: Path, worker: Path, rate: Rate | None) -> FlowPlan:
    worker_config = worker_file(read_properties(worker), os.environ)
    given = read_file(file)
    config = {**given.texts(), **({} if given.name is None else {"name": given.name})}
    return plan_source(
        *ConnectorSettings(worker_config.properties, worker_config.settings, os.environ).source(config), rate
    )


def _of_worker(connect: ConnectRest, names: Sequence[str]) -> list[FlowPlan]:
    wanted = names or [
        name
        for name, found in sorted(connect.expanded().items())
        if found["info"]["config"].get("connector.class", "").endswith(_SOURCE_CLASS)
    ]
    try:
        return [from_json(connect.plan(name)) for name in wanted]
    except (KeyError, TypeError, ValueError) as error:
        raise SparkmirrorError(
            f"{connect.url} does not respond with a plan of this version: {error!r}"
        ) from error


def _show(plans: Sequence[FlowPlan], output: str, *, detail: bool) -> None:
    match output:
        case "json":
            sys.stdout.write(
                json.dumps([to_json(plan) for plan in plans], indent=2, ensure_ascii=False) + "\n"
            )
        case "yaml":
            sys.stdout.write(yaml_text([to_json(plan) for plan in plans]))
        case _:
            write: Callable[[str], None] = _coloured(Console()) if sys.stdout.isatty() else _plainly
            for plan in plans:
                for line in flow_lines(plan, detail=detail):
                    write(printable(line))
                write("")
            write(summary(plans))


def _coloured(console: Console) -> Callable[[str], None]:
    def write(line: str) -> None:
        style = _STYLES.get(line.strip()[:1], "bold" if line and not line.startswith(" ") else "")
        console.print(Text(line, style=style), soft_wrap=True)

    return write


def _plainly(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _fail(reason: object, code: int) -> int:
    sys.stderr.write(f"{_PROG}: {printable(str(reason))}\n")
    return code
