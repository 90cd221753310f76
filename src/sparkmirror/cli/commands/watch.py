"""Defines `sparkmirror watch`: pages and metrics of a mirror that runs anywhere, Java's included."""

import argparse
import logging
import sys
import threading
from typing import Final

from sparkmirror.cli.arguments import mirror_file
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE
from sparkmirror.cli.http_server import Address, address, serve_pages
from sparkmirror.cli.logging import add_logging_arguments
from sparkmirror.cli.mirroring_flows import add_flow_argument, mirroring_flows
from sparkmirror.cli.process import stop_on_signals
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.metrics.page import Metrics
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.mirror_watch import KNOWN_METRICS, MirrorWatch

_log = logging.getLogger(__name__)

_DEFAULT: Final = Address("127.0.0.1", 8080)

_HELP: Final = """\
Serves pages (/ui/), /mirror, /metrics and /health of a mirror that runs
anywhere: this one or Java's, dedicated or on Kafka Connect. It reads Kafka
alone - positions, offset syncs, checkpoints, heartbeats, the ends of both
clusters - every 5 s, writes nothing, and needs no Spark.

Of Java's mirror bytes and latencies are not known, and a position may be a
minute old (offset.flush.interval.ms): what was copied since counts as lag.

examples:
  sparkmirror watch mm2.properties
  sparkmirror watch mm2.properties --http 9404 --flow 'us-west->us-east'
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("watch", description=_HELP)
    parser.add_argument("file", type=mirror_file, metavar="FILE", help="the mm2.properties of the mirror")
    add_flow_argument(parser)
    parser.add_argument(
        "--http",
        type=address,
        default=_DEFAULT,
        metavar="[HOST:]PORT",
        help="where to serve, without authentication (0: a free port; default: 127.0.0.1:8080)",
    )
    add_logging_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    ended = threading.Event()
    stop_on_signals(ended.set)
    try:
        flows = mirroring_flows(arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow)
        watch = MirrorWatch([(flow.settings, flow.connector) for flow in flows])
        metrics = Metrics(watch.readings, known=KNOWN_METRICS)
        serve_pages(watch, metrics, arguments.http, [flow.settings for flow in flows])
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror watch: {printable(str(error))}\n")
        return CANNOT_TELL
    watch.start()
    _log.info("watching %s; Ctrl-C or SIGTERM stops", ", ".join(flow.name for flow in flows))
    ended.wait()
    watch.stop()
    return FINE
