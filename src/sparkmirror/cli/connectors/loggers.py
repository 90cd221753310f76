"""`loggers`: how much a worker logs of what (KIP-495, KIP-976)."""

import argparse
from datetime import datetime

from sparkmirror.cli.connectors.asking import DONE, Verb, add_verb, say
from sparkmirror.cli.connectors.views import View, add_output_argument, show
from sparkmirror.client.connect_objects import LoggerLevel
from sparkmirror.client.connect_rest import ConnectRest

_HELP = """\
The log levels of the worker that is asked; with a level, set one.

examples:
  sparkmirror connectors loggers
  sparkmirror connectors loggers org.apache.kafka.connect.mirror
  sparkmirror connectors loggers org.apache.kafka.connect.mirror DEBUG --scope cluster
"""


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, Verb("loggers", "show and set log levels", _HELP, _loggers))
    parser.add_argument("logger", nargs="?", metavar="LOGGER", help="only this one")
    parser.add_argument("level", nargs="?", metavar="LEVEL", help="what it is to log: DEBUG, INFO, WARN, …")
    parser.add_argument(
        "--scope",
        choices=("worker", "cluster"),
        default="worker",
        help="of the worker that is asked, or of all (%(default)s)",
    )
    add_output_argument(parser)


def _loggers(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    name, level = arguments.logger, arguments.level
    if level is not None:
        changed = connect.set_log_level(name, level.upper(), arguments.scope)
        for each in changed or [name]:
            say(f"{each}: {level.upper()}")
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
