"""Defines `sparkmirror demo`: its arguments, its work folder, its exit codes."""

import argparse
import logging
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from rich.console import Console

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.commands.demo.demo import Demo, DemoOptions
from sparkmirror.cli.commands.demo.shop import Shop
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, INTERRUPTED, NOT_FINE
from sparkmirror.cli.process import interrupt_on_signals, stop_on_signals
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import NotInstalledError, SparkmirrorError
from sparkmirror.spark.required import require_spark

_log = logging.getLogger("sparkmirror.shop")

_LOOK_S: Final = 1.0


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
    parser.add_argument(
        "--shop",
        type=_server,
        metavar="HOST:PORT",
        help="only fill this cluster like a busy shop, until SIGINT or SIGTERM",
    )
    parser.set_defaults(run=run)


def _server(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def run(arguments: argparse.Namespace) -> int:
    if arguments.shop is not None:
        return _run_shop(arguments)
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


def _run_shop(arguments: argparse.Namespace) -> int:
    """Raises SparkmirrorError when the cluster can't be reached, at the start or later."""
    shop = Shop(ConnectionSettings((arguments.shop,), client_id="shop"), arguments.rate)
    stopping = threading.Event()
    stop_on_signals(stopping.set)
    shop.create_topics(arguments.partitions)
    shop.open()
    _log.info("the shop is open: %d records a second", arguments.rate)
    try:
        while not stopping.wait(_LOOK_S):
            shop.check()
    finally:
        shop.close()
    _log.info("the shop is closed: %s", ", ".join(f"{count} {name}" for name, count in shop.written.items()))
    return FINE


def _fail(reason: object, code: int) -> int:
    _print_error(f"sparkmirror demo: {reason}")
    return code


def _print_error(text: str) -> None:
    sys.stderr.write(f"{text}\n")
