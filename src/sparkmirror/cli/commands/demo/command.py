"""Defines `sparkmirror demo`: its arguments, its work folder, its exit codes."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.commands.demo.demo import Demo, DemoOptions
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, INTERRUPTED, NOT_FINE
from sparkmirror.cli.process import interrupt_on_signals
from sparkmirror.domain.errors import NotInstalledError, SparkmirrorError
from sparkmirror.spark.required import require_spark


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `demo` to the command line; its `run` takes the parsed arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "demo",
        description="Start two real Kafka clusters, fill one like a busy shop, mirror it live to the other, "
        "and compare every record as `sparkmirror verify` does.",
    )
    parser.add_argument(
        "--rate",
        type=positive,
        default=5000,
        metavar="N",
        help="records per second, all topics together (5000)",
    )
    parser.add_argument(
        "--duration", type=positive, default=25, metavar="S", help="seconds of live mirroring (25)"
    )
    parser.add_argument(
        "--partitions", type=positive, default=4, metavar="N", help="partitions per topic (4)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave clusters and mirror running after the proof, until Ctrl-C"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    options = DemoOptions(arguments.rate, arguments.duration, arguments.partitions, arguments.keep)
    interrupt_on_signals()
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-demo-"))
    try:
        require_spark()
        code = FINE if Demo(options, Console(), directory).run() else NOT_FINE
    except NotInstalledError as error:
        code = _fail(error, CANNOT_TELL)
    except SparkmirrorError as error:
        code = _fail(error, NOT_FINE)
    except KeyboardInterrupt:
        code = _fail("interrupted; everything is stopped", INTERRUPTED)
    if options.keep or code == NOT_FINE:
        _print_error(f"Settings, logs and data are in {directory}")
    else:
        shutil.rmtree(directory)
    return code


def _fail(reason: object, code: int) -> int:
    _print_error(f"sparkmirror demo: {reason}")
    return code


def _print_error(text: str) -> None:
    sys.stderr.write(f"{text}\n")
