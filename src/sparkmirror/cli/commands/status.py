"""Defines `sparkmirror status`: how a mirror is, by file or URL, or three connectors' states, as `mm2.sh`."""

import argparse
from pathlib import Path
from typing import Final

from sparkmirror.cli.arguments import not_empty
from sparkmirror.cli.commands.connectors.rest_commands import (
    NOT_SENT,
    Connect,
    RestCommand,
    add_rest_command,
    print_error,
)
from sparkmirror.cli.commands.connectors.rest_commands import run as ask_worker
from sparkmirror.cli.commands.connectors.views import add_output_argument
from sparkmirror.cli.commands.connectors.watch import add_watch_arguments
from sparkmirror.cli.commands.deploy import show_status
from sparkmirror.cli.rest_access import connected, is_url

_HELP: Final = """\
Of a FILE, an mm2.properties or a Strimzi resource: how its mirror is, on whatever machine it runs, Java's
included: each topic's lag, partitions that fail, the last heartbeat, the process, groups with checkpoints. It
is told from Kafka alone, and changes nothing.

Of a URL, or without any name of --url: the same as the mirror that runs there says it: a worker,
`run --http` or `watch`.

Of a CLUSTER, a name that is no file: the states of the connectors mm2-cpc-CLUSTER, mm2-hbc-CLUSTER and
mm2-msc-CLUSTER on a Connect worker, as mm2.sh prints them.

states of a flow:
  caught up       everything is on the target
  catching up     it runs, and there is something left to copy
  retrying        partitions fail, and may recover by themselves
  action required  partitions fail until somebody changes something; the error says what
  not running     it was stopped, or there is no sign of life
  unknown         the lag of a partition can't be told, and why
of a URL also: falling behind, stalled, paused

examples:
  sparkmirror status mm2.properties
  sparkmirror status mm2.properties --watch
  sparkmirror status mm2.properties --flow 'us-west->us-east' -o json
  sparkmirror status http://mirror-host:8080
  sparkmirror status https://mirror-host:8080 --user ops --password-file ops.txt --watch
  sparkmirror status source-0                       the connectors of `sparkmirror deploy source-0`
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
    add_watch_arguments(parser)

    def run(arguments: argparse.Namespace, connect: Connect = connected) -> int:
        if arguments.cluster is None or is_url(arguments.cluster):
            return _of_url(arguments)
        file = Path(arguments.cluster)
        if file.is_file():
            # Loaded here, since states of connectors need none of it.
            from sparkmirror.cli.commands import mirror_status  # noqa: PLC0415

            return mirror_status.run(arguments, file)
        if file.suffix:
            print_error(arguments.prog, f"{file} is no file, and no name of a cluster")
            return NOT_SENT
        return ask_worker(command, arguments, connect)

    parser.set_defaults(run=run)


def _of_url(arguments: argparse.Namespace) -> int:
    from sparkmirror.cli.commands import seen_status  # noqa: PLC0415 - as above

    if arguments.cluster is None:
        return seen_status.run(arguments, arguments.url)
    if arguments.url is not None:
        print_error(arguments.prog, "name the URL once: as an argument, or by --url")
        return NOT_SENT
    return seen_status.run(arguments, arguments.cluster)
