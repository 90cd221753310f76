"""Shows and sets the log levels of workers (KIP-495, KIP-976): the command `loggers`."""

import argparse
from datetime import datetime

from sparkmirror.cli.commands.connectors.rest_commands import DONE, RestCommand, add_rest_command, print_line
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.client.connect_objects import LoggerLevel
from sparkmirror.client.connect_rest import ConnectRest

_HELP = """\
Show the log levels of a worker; with LEVEL, set one.

examples:
  sparkmirror connectors loggers
  sparkmirror connectors loggers org.apache.kafka.connect.mirror
  sparkmirror connectors loggers org.apache.kafka.connect.mirror DEBUG --scope cluster
"""


def add_commands(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_rest_command(verbs, RestCommand("loggers", "show and set log levels", _HELP, _loggers))
    parser.add_argument("logger", nargs="?", metavar="LOGGER", help="only this one")
    parser.add_argument("level", nargs="?", metavar="LEVEL", help="DEBUG, INFO, WARN, …")
    parser.add_argument(
        "--scope",
        choices=("worker", "cluster"),
        default="worker",
        help="of this worker, or of all (%(default)s)",
    )
    add_output_argument(parser)


def _loggers(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    name, level = arguments.logger, arguments.level
    if level is not None:
        changed = connect.set_log_level(name, level.upper(), arguments.scope)
        for each in changed or [name]:
            print_line(f"{each}: {level.upper()}")
        return DONE
    if name is not None:
        logger = connect.logger(name)
        show(View(logger, ("logger", "level", "since"), [_row(name, logger)]), arguments.output)
        return DONE
    found = connect.loggers()
    rows = [_row(each, found[each]) for each in sorted(found)]
    show(View(found, ("logger", "level", "since"), rows), arguments.output)
    return DONE


def _row(name: str, logger: LoggerLevel) -> tuple[str, str, str]:
    changed_ms = logger.get("last_modified")
    since = "-" if changed_ms is None else f"{datetime.fromtimestamp(changed_ms / 1000).astimezone():%F %T}"
    return name, logger["level"] or "-", since
