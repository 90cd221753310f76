"""Defines `sparkmirror connectors`: its commands, and `contexts`, which lists REST APIs that have a name."""

import argparse
import sys

from sparkmirror.cli.commands.connectors import changes, loggers, offsets, plugins, queries
from sparkmirror.cli.commands.connectors.rest_commands import DONE, NOT_SENT, print_error
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.cli.contexts import CONTEXTS_HELP, Contexts, contexts_file
from sparkmirror.domain.errors import ConfigError

_HELP = """\
Sends requests to the REST API of a Connect worker, Java's included; any worker of a group will do.

A request that fails because of a rebalance is retried for a minute. Passwords are shown only with
--show-secrets, and never accepted on the command line.
"""
_EPILOG = """\
examples:
  sparkmirror connectors list                            on http://localhost:8083, or the current context
  sparkmirror connectors status --url http://connect-1:8083
  sparkmirror connectors put mm2-msc mm2-msc.json --wait
  sparkmirror connectors restart mm2-msc --include-tasks --only-failed --wait
  sparkmirror connectors contexts -h                     names, passwords and certificates of other APIs
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "connectors",
        description=_HELP,
        epilog=_EPILOG,
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (queries, changes, offsets, plugins, loggers):
        module.add_commands(verbs)
    _add_contexts(verbs)


def _add_contexts(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "contexts",
        help="names for REST APIs, and how to define them",
        description=f"Print the defined contexts.\n\n{CONTEXTS_HELP}",
    )
    add_output_argument(parser)
    parser.set_defaults(run=_contexts)


def _contexts(arguments: argparse.Namespace) -> int:
    try:
        contexts = Contexts(contexts_file())
        urls = contexts.urls
    except ConfigError as error:
        print_error("sparkmirror connectors contexts", error)
        return NOT_SENT
    rows = [("*" if name == contexts.current else "", name, url) for name, url in urls.items()]
    content = [{"name": name, "url": url, "current": bool(mark)} for mark, name, url in rows]
    show(View(content, ("current", "name", "url"), rows), arguments.output)
    if not rows:
        sys.stderr.write(f"{contexts_file()} has no contexts; --help shows the format\n")
    return DONE
