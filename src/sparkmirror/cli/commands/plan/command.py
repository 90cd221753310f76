"""Defines `sparkmirror plan`: prints the plan that a mirror would follow."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sparkmirror.cli.arguments import is_url, positive
from sparkmirror.cli.commands.connectors.input_files import read_file
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.reachability import clusters_of, silent_clusters
from sparkmirror.cli.rest_access import add_access_arguments, connected
from sparkmirror.client.connect_rest import ConnectRest
from sparkmirror.config.file_findings import all_topics, file_findings
from sparkmirror.config.properties import read_properties
from sparkmirror.connect.connector_parser import ConnectorParser
from sparkmirror.connect.worker_file import worker_file
from sparkmirror.domain.errors import DisconnectedError, KafkaError, SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.printable import printable, printable_json
from sparkmirror.plan.flow_plan import FlowPlan, Rate
from sparkmirror.plan.flow_plan_json import from_json
from sparkmirror.plan.flow_planning import DEFAULT_RATE, plan_flow, plan_source
from sparkmirror.plan.plan_findings import joined
from sparkmirror.plan.report import Planned
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file

_NO_CHANGES = 0
_ERROR = 1
_CHANGES = 2
"""The exit code with --detailed-exitcode, the same as Terraform's."""
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
  sparkmirror plan mm2.properties                        # every flow of the file
  sparkmirror plan mm2.properties --clusters B --detail  # the flows into B, every line
  sparkmirror plan mm2.properties --rate 30000000        # at 30 MB/s
  sparkmirror plan mm2-msc.json --worker connect-distributed.properties
                                                         # a connector, before it is put on a worker
  sparkmirror plan --url http://connect-1:8083           # connectors of a running sparkmirror worker
  sparkmirror plan mm2.properties --detailed-exitcode    # in CI: has anything drifted?
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
        help="an mm2.properties, a Strimzi resource, or a connector's JSON (with --worker); with --url, "
        "names of connectors (default: every MirrorSourceConnector)",
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
        "-o", "--output", choices=("table", "json"), default="table", help="the plan's form (table)"
    )
    parser.add_argument("--detail", action="store_true", help="show every line, topic and partition")
    parser.add_argument(
        "--detailed-exitcode",
        action=_DetailedExitCode,
        help="tell by the exit code whether there are changes: 0 none, 1 error or blocked, 2 changes",
    )
    parser.set_defaults(run=run)


class _DetailedExitCode(argparse._StoreTrueAction):  # noqa: SLF001 - argparse's only name for it
    """Sets the option, and lets wrong usage exit with 1, since 2 means changes."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        parser.set_defaults(usage_exit_code=_ERROR)
        super().__call__(parser, *given)


def run(arguments: argparse.Namespace) -> int:
    try:
        planned = _planned(arguments)
    except (SparkmirrorError, OSError) as error:
        _print_error(error)
        return _ERROR if arguments.detailed_exitcode else CANNOT_TELL
    return _exit_code(planned, arguments)


def _exit_code(planned: Planned, arguments: argparse.Namespace) -> int:
    """Print what was planned, and what could not be."""
    _show(planned, arguments.output, detail=arguments.detail)
    for flow, reason in planned.failed.items():
        _print_error(f"{flow}: {reason}")
    code = NOT_FINE if planned.is_blocked else CANNOT_TELL if planned.failed else FINE
    if not arguments.detailed_exitcode:
        return code
    if code != FINE:
        return _ERROR
    return _CHANGES if planned.has_changes else _NO_CHANGES


def _planned(arguments: argparse.Namespace) -> Planned:
    if arguments.url is not None:
        with connected(arguments) as connect:
            return Planned(_of_worker(connect, arguments.names))
    if any(map(is_url, arguments.names)):
        raise SparkmirrorError(f"{arguments.names[0]} is a URL: put --url before it")
    if len(arguments.names) != 1:
        hint = ""
        if not arguments.names and arguments.clusters and Path(arguments.clusters[-1]).is_file():
            hint = f": put {arguments.clusters[-1]} before --clusters"
        raise SparkmirrorError(f"one FILE is required, or --url{hint}")
    file = Path(arguments.names[0])
    rate = None if arguments.rate is None else Rate(arguments.rate, "--rate")
    if arguments.worker is not None:
        return Planned([_of_connector(file, arguments.worker, rate)])
    return _of_file(file, arguments.clusters, rate)


def _of_file(file: Path, into_clusters: Sequence[str] | None, rate: Rate | None) -> Planned:
    read = read_mirror_maker_file(file, into_clusters)
    silent = silent_clusters(clusters_of(read.flows))
    plans: list[FlowPlan] = []
    failed: dict[Flow, str] = {}
    for settings in read.flows:
        flow = settings.flow
        needed = flow if settings.source is not None else (flow.target,)
        errors = [silent[alias] for alias in needed if alias in silent]
        try:
            if errors:
                raise DisconnectedError("; ".join(errors))
            plan = plan_flow(settings, rate)
        except KafkaError as error:
            failed[flow] = str(error)
        else:
            notes = all_topics(read.config, flow)
            plans.append(replace(plan, findings=(*plan.findings, *notes)))
    return Planned(joined(plans), failed, str(file), file_findings(read.config))


def _of_connector(file: Path, worker: Path, rate: Rate | None) -> FlowPlan:
    worker_config = worker_file(read_properties(worker), os.environ)
    given = read_file(file)
    config = {**given.config, **({} if given.name is None else {"name": given.name})}
    return plan_source(
        *ConnectorParser(worker_config.properties, worker_config.settings, os.environ).source(config), rate
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


def _show(planned: Planned, output: str, *, detail: bool) -> None:
    if output == "json":
        sys.stdout.write(printable_json(planned.to_json(), indent=2) + "\n")
        return
    write: Callable[[str], None] = _coloured(Console()) if sys.stdout.isatty() else _plainly
    for line in planned.lines(detail=detail):
        write(printable(line))


def _coloured(console: Console) -> Callable[[str], None]:
    def write(line: str) -> None:
        style = _STYLES.get(line.strip()[:1], "bold" if line and not line.startswith(" ") else "")
        console.print(Text(line, style=style), soft_wrap=True)

    return write


def _plainly(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _print_error(reason: object) -> None:
    sys.stderr.write(f"{_PROG}: {printable(str(reason))}\n")
