"""Defines the commands of `sparkmirror`, runs one, and turns its errors into one line and an exit code."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from sparkmirror import __version__
from sparkmirror.cli.logging import configure_logging
from sparkmirror.domain.errors import JavaMissingError, SparkmirrorError

_MODULES: Final = (
    "demo.command",
    "run",
    "worker",
    "plan.command",
    "verify.command",
    "lag",
    "connectors.command",
    "deploy",
    "mirror_state",
    "groups",
    "group_offset_sync",
    "migrate.command",
    "convert",
    "clusters",
    "prepare",
    "archive",
    "completion",
)
"""In the order in which --help lists them."""
_MODULE_BY_COMMAND: Final = {
    "demo": "demo.command",
    "run": "run",
    "worker": "worker",
    "plan": "plan.command",
    "verify": "verify.command",
    "lag": "lag",
    "connectors": "connectors.command",
    "groups": "groups",
    "group-offset-sync": "group_offset_sync",
    "migrate": "migrate.command",
}
"""Commands whose module is imported alone: importing all of them takes a third of a second more."""
_FAILED = 1
_WRONG_USAGE = 2
_JAVA_MISSING = 2

_EXAMPLES = """\
examples:
  sparkmirror demo                   two clusters, live mirroring, proof: about a minute
  sparkmirror run mm2.properties     mirror clusters as configured in mm2.properties
  sparkmirror plan mm2.properties    what a mirror would do, and what blocks it
  sparkmirror verify mm2.properties  prove that the mirror is exact, record by record
  sparkmirror lag mm2.properties     how far a mirror is behind, Java's included
  sparkmirror clusters up            two local Kafka clusters, named source and target
  sparkmirror clusters status        their addresses, sizes and logs
  sparkmirror clusters down --all    stop them
  sparkmirror translate-offsets -h   where consumer groups continue after a move
  sparkmirror topics explain -h      why a topic is mirrored or not, and its progress
  sparkmirror groups explain -h      a consumer group's offsets on a target, explained
  sparkmirror migrate consumers -h   move consumer groups to another cluster, step by step
  sparkmirror convert -h             mm2.properties to connector JSON or Strimzi resources, and back
  sparkmirror connectors list        the connectors of a Connect worker, Java's included
  sparkmirror deploy source-0        run a mirror's connectors on a Connect worker, by its JSON files
  sparkmirror completion bash        complete commands when Tab is pressed
  sparkmirror prepare                halve the time of later starts
  sparkmirror archive -h             Python packages for the executors of a Spark cluster
"""


def run_command(words: Sequence[str]) -> int:
    """Run one command and return its exit code. argparse itself exits after --help and on wrong usage."""
    module = _MODULE_BY_COMMAND.get(words[0]) if words else None
    arguments = build_parser(_MODULES if module is None else [module]).parse_args(words)
    configure_logging(arguments.log_format)
    try:
        return int(arguments.run(arguments))
    except (SparkmirrorError, OSError) as error:  # a folder that can't be written, for example
        sys.stderr.write(f"sparkmirror: {error}\n")
        return _JAVA_MISSING if isinstance(error, JavaMissingError) else _FAILED


def build_parser(modules: Sequence[str] = _MODULES) -> argparse.ArgumentParser:
    """Every command and its arguments, or those of some modules.

    A command's module has `add_parser(subparsers)`, which sets `run`: arguments in, exit code out. It may
    also set `usage_exit_code` and take `--log-format`.
    """
    parser = _Parser(
        prog="sparkmirror",
        description="Kafka MirrorMaker 2 on Spark: copies record batches between Kafka clusters.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sparkmirror {__version__}")
    parser.set_defaults(log_format="text")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in modules:
        import_module(f"sparkmirror.cli.{module}").add_parser(subparsers)
    return parser


class _Parser(argparse.ArgumentParser):
    """Exits on wrong usage with the command's own code; argparse always exits with 2."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments here: argparse leaves them to the parent, which has another code."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        code = self.get_default("usage_exit_code")
        self.exit(_WRONG_USAGE if code is None else code, f"{self.prog}: {message}\n")
