"""Defines `sparkmirror status`: how a mirror is, by file or URL, or three connectors' states, as `mm2.sh`."""

import argparse
from pathlib import Path
from typing import Final

from sparkmirror.cli.arguments import is_url, not_empty
from sparkmirror.cli.commands.connectors.rest_commands import (
    Connect,
    RestCommand,
    add_rest_command,
    print_error,
)
from sparkmirror.cli.commands.connectors.rest_commands import run as ask_worker
from sparkmirror.cli.commands.connectors.views import add_output_argument
from sparkmirror.cli.commands.deploy import show_status
from sparkmirror.cli.exit_codes import CANNOT_TELL
from sparkmirror.cli.rest_access import connected

_HELP: Final = """\
Prints how a mirror is, on whatever machine it runs, Java's included: each topic's lag, partitions that fail,
the last heartbeat, the process, groups with checkpoints. Changes nothing.

whom it asks:
  FILE     Kafka alone; the file is an mm2.properties or a Strimzi resource
  URL      the mirror that runs there: a worker, `run --http` or `watch`; --url, where no name is given
  CLUSTER  a Connect worker, for the states of mm2-msc-, mm2-hbc- and mm2-cpc-CLUSTER, as mm2.sh prints them

states of a flow, as on its pages (docs/troubleshooting.md), the worst first:
  action required  it does not run, or partitions fail until an operator acts; the error says what to do
  stalled          there is lag and no error, and no progress for a minute (of Java's mirror: three)
  unknown          the lag of a partition can't be told, and why
  starting         its copy job has just begun, or waits for what is named
  retrying         partitions fail, and may recover by themselves
  stopped          it was stopped in order
  paused           its connector is paused
  throttled        there is lag, and a quota of a cluster lets no more through
  falling behind   the lag grows
  catching up      the lag shrinks
  standby          another process copies, or the opposite flow does
  caught up        everything that is older than 5 s is on the target
  promoted         applications write the topics on the target
`falling behind` of a FILE, and `stalled` of Java's mirror, take two looks: `sparkmirror top` has them.

examples:
  sparkmirror status mm2.properties
  watch -n 5 sparkmirror status mm2.properties
  sparkmirror status mm2.properties --flow 'us-west->us-east' -o json
  sparkmirror status http://mirror-host:8080
  sparkmirror status https://mirror-host:8080 --user ops --password-file ops.txt
  sparkmirror status source-0  # the connectors of `sparkmirror deploy source-0`
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = RestCommand("status", "", _HELP, show_status)
    parser = add_rest_command(subparsers, command)
    parser.add_argument(
        "cluster",
        nargs="?",
        type=not_empty,
        metavar="FILE | URL | CLUSTER",
        help="a mirror's file or URL, or the cluster whose connectors were deployed",
    )
    parser.add_argument(
        "--flow", action="append", metavar="A->B", help="only this flow of the file; may be repeated"
    )
    add_output_argument(parser)

    def run(arguments: argparse.Namespace, connect: Connect = connected) -> int:
        of = arguments.cluster
        if of is None:
            return _mirror_status(arguments, arguments.url)
        if is_url(of) and arguments.url is not None:
            print_error(arguments.prog, "name the URL once: as an argument, or by --url")
            return CANNOT_TELL
        if is_url(of) or Path(of).is_file():
            return _mirror_status(arguments, of)
        if Path(of).suffix:
            print_error(arguments.prog, f"{of} is no file, and no name of a cluster")
            return CANNOT_TELL
        return ask_worker(command, arguments, connect)

    parser.set_defaults(run=run)


def _mirror_status(arguments: argparse.Namespace, of: str | None) -> int:
    # Loaded here, since states of connectors need none of it.
    from sparkmirror.cli.commands import mirror_status  # noqa: PLC0415

    return mirror_status.run(arguments, of)
