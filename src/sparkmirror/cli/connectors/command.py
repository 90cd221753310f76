"""`sparkmirror connectors`: which commands there are, and which REST APIs they know by name."""

import argparse
import sys

from sparkmirror.cli.connectors import changing, loggers, offsets, plugins, showing
from sparkmirror.cli.connectors.asking import DONE, NOT_ASKED, complain
from sparkmirror.cli.connectors.views import View, add_output_argument, show
from sparkmirror.cli.contexts import CONTEXTS_HELP, Contexts, contexts_file
from sparkmirror.domain.errors import ConfigError

_HELP = """\
Asks the REST API of any Connect worker, Java's included; any worker of a group answers for all of it.

A request that a worker can't meet because of a rebalance is repeated for a minute. Passwords are never shown
unless --show-secrets says so, and never taken from the command line.
"""
_EPILOG = """\
examples:
  sparkmirror connectors list                            on http://localhost:8083, or the current context
  sparkmirror connectors status --url http://connect-1:8083
  sparkmirror connectors put mm2-msc mm2-msc.json --wait
  sparkmirror connectors restart mm2-msc --include-tasks --only-failed --wait
  sparkmirror connectors contexts -h                     names, passwords and certificates of other APIs

exit codes: 0 done (status: all is RUNNING), 1 the API refuses it, or something is not as it has to be, 2
wrong usage, a file that can't be used, or no Connect REST API that answers
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "connectors",
        help="list, configure, stop, restart … connectors of any Connect worker",
        description=_HELP,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (showing, changing, offsets, plugins, loggers):
        module.add_verbs(verbs)
    _add_contexts(verbs)


def _add_contexts(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "contexts",
        help="names for REST APIs, and how to give them",
        description=f"Print the contexts that there are.\n\n{CONTEXTS_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_output_argument(parser)
    parser.set_defaults(run=_contexts)


def _contexts(arguments: argparse.Namespace) -> int:
    try:
        contexts = Contexts(contexts_file())
        urls = contexts.urls
    except ConfigError as error:
        complain("sparkmirror connectors contexts", error)
        return NOT_ASKED
    rows = [("*" if name == contexts.current else "", name, url) for name, url in urls.items()]
    content = [{"name": name, "url": url, "current": bool(mark)} for mark, name, url in rows]
    show(View(content, ("current", "name", "url"), rows), arguments.output)
    if not rows:
        sys.stderr.write(f"{contexts_file()} has none; --help says what it looks like\n")
    return DONE
