"""The `sparkmirror` program: prepares its streams, runs one command, and ends in order when interrupted.

Everything else is imported by `main`, so that Ctrl-C is answered also while modules are being loaded.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

_INTERRUPTED = 130
_SERVICES = ("run", "worker", "watch")
"""The commands that run until a signal, at which they end in order."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. argparse itself exits after --help and on wrong usage."""
    words = sys.argv[1:] if argv is None else argv
    try:
        process = import_module("sparkmirror.cli.process")
        process.check_output()
        process.escape_unencodable(sys.stdout, sys.stderr)
        try:
            with process.stoppable() if words and words[0] in _SERVICES else nullcontext():
                return _run(words)
        except process.OutputError as error:
            return int(process.give_output_up(error))
    except KeyboardInterrupt:
        sys.stderr.write("sparkmirror: interrupted\n")
        return _INTERRUPTED


def _run(words: Sequence[str]) -> int:
    """Run a command, and write its output when it ends, or raises."""
    try:
        return int(import_module("sparkmirror.cli.command_runner").run_command(words))
    finally:
        sys.stdout.flush()
