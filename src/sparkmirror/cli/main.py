"""The `sparkmirror` program: prepares its streams, runs one command, and ends in order when interrupted.

Everything else is imported by `main`, so that Ctrl-C is answered also while modules are being loaded.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. argparse itself exits after --help and on wrong usage."""
    try:
        import_module("sparkmirror.cli.process").escape_unencodable(sys.stdout, sys.stderr)
        return int(
            import_module("sparkmirror.cli.command_runner").run_command(
                sys.argv[1:] if argv is None else argv
            )
        )
    except KeyboardInterrupt:
        sys.stderr.write("sparkmirror: interrupted\n")
        return _INTERRUPTED
