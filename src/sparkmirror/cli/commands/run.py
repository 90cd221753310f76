"""Defines `sparkmirror run`, the dedicated mode: the counterpart of `connect-mirror-maker.sh`."""

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparkmirror.cli.arguments import mirror_file
from sparkmirror.cli.http_server import (
    add_metrics_arguments,
    address,
    current_view,
    serve_metrics,
    serve_pages,
    shown_url,
)
from sparkmirror.cli.logging import add_logging_arguments
from sparkmirror.cli.process import stop_on_signals
from sparkmirror.cli.service_manager import ServiceManager
from sparkmirror.config.file_findings import file_findings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.findings import Severity
from sparkmirror.domain.ids import Alias
from sparkmirror.metrics.page import Metrics
from sparkmirror.metrics.settings import metrics_settings
from sparkmirror.settings.changed_file import ChangedFile
from sparkmirror.settings.configured import ConfiguredFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.spark.log_files import spark_log_file
from sparkmirror.spark.required import require_spark

if TYPE_CHECKING:
    from sparkmirror.mirror.dedicated import MirrorMaker

_log = logging.getLogger("sparkmirror.run")

_START_FAILED = 3
_FAILED = 2

_EXAMPLES = """\
example mm2.properties:
  clusters = A, B
  A.bootstrap.servers = a1:9092, a2:9092
  B.bootstrap.servers = b1:9092
  A->B.enabled = true
  A->B.topics = orders.*, payments

  sparkmirror run mm2.properties                 # every flow of the file
  sparkmirror run mm2.properties --clusters B    # only the flows into B
  sparkmirror run mm2.properties --master spark://host:7077
  sparkmirror run mirror-maker-2.yaml            # a KafkaMirrorMaker2 resource of Strimzi
  sparkmirror run mm2.properties --http 8080     # http://HOST:8080/ shows what the mirror does
  sparkmirror run mm2.properties --metrics-port 9404
                                                 # http://HOST:9404/metrics for Prometheus

settings that take effect while it runs, a second or two after the file was saved:
  A->B.max.bytes.per.second = 5000000               limit of the flow
  A->B.topic.max.bytes.per.second = orders.*=1000000, .*=2000000
                                                    limit of each topic: the first REGEX=BYTES that matches
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "run",
        description="Mirror clusters as configured in an mm2.properties file, until SIGINT, SIGTERM, SIGHUP.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "file", type=mirror_file, metavar="FILE", help="the mm2.properties file, or a Strimzi resource"
    )
    parser.add_argument(
        "--clusters",
        nargs="+",
        metavar="ALIAS",
        help="run only the flows into these clusters; FILE comes before",
    )
    parser.add_argument(
        "--accept-cluster",
        nargs="+",
        metavar="ALIAS",
        default=(),
        help="the cluster that answers for ALIAS now is meant, whatever its id was: the copy begins as at a "
        "first start",
    )
    parser.add_argument("--master", help="Spark's master URL (default: spark.master of the file, or local)")
    parser.add_argument(
        "--log-file", type=Path, help="file for Spark's own log (default: a new temporary file)"
    )
    parser.add_argument(
        "--http",
        type=address,
        metavar="[HOST:]PORT",
        help="serve pages (/ui/), /mirror, /metrics and /health there, without authentication "
        "(0: a free port; default: none)",
    )
    add_metrics_arguments(parser)
    add_logging_arguments(parser)
    parser.set_defaults(run=run, usage_exit_code=255)


def run(arguments: argparse.Namespace) -> int:
    began, service = time.monotonic(), ServiceManager()
    try:
        file = ChangedFile(arguments.file, arguments.clusters)
        read = read_mirror_maker_file(arguments.file, arguments.clusters)
        options = read.metrics
        metrics = metrics_settings(options._replace(rules=arguments.metrics_rules or options.rules))
    except SparkmirrorError as error:
        _log.error("%s", error)
        return _FAILED
    unknown = set(arguments.accept_cluster) - {alias for flow in read.flows for alias in flow.flow}
    if unknown:
        _log.error("--accept-cluster: no flow has the cluster %s", ", ".join(sorted(unknown)))
        return _FAILED
    for finding in file_findings(read.config):
        _log.log(logging.INFO if finding.severity is Severity.NOTE else logging.WARNING, "%s", finding)
    if arguments.master:
        read.spark["spark.master"] = arguments.master
    require_spark()
    from sparkmirror.mirror.dedicated import (  # noqa: PLC0415 - needs PySpark, the parser does not
        MirrorMaker,
        own_spark,
    )

    log_file = arguments.log_file or spark_log_file("run")
    accepted = frozenset(map(Alias, arguments.accept_cluster))
    spark = own_spark(read.flows, read.spark, log_file)
    mirror = MirrorMaker(read.flows, spark, shared=read.shared, file=file, accepted=accepted)
    _log.info("flows: %s", ", ".join(map(_named, read.flows)))
    stop_on_signals(mirror.stop)
    try:
        _serve(mirror, Metrics(mirror.readings, metrics, mirror.node_reading), arguments, read.flows)
        start = _Start(mirror, service, began)
        mirror.start(start.check)
        start.check()
    except SparkmirrorError as error:
        _log.error("%s", error)
        mirror.close()
        return _START_FAILED if error.restart_helps else _FAILED
    try:
        mirror.wait(start.check)
    except SparkmirrorError as error:
        _log.error("%s", error)
        return _FAILED
    finally:
        service.stopping()
        mirror.close()
    _log.info("stopped")
    return 0


class _Start:
    """Says once that the mirror has started: when every cluster that it mirrors has answered.

    The service manager gets to know of each turn of the loop, and how the flows are.
    """

    def __init__(self, mirror: "MirrorMaker", service: ServiceManager, began: float) -> None:
        self._mirror = mirror
        self._service = service
        self._view = current_view(mirror)
        self._began = began
        self._is_said = False
        self._is_waiting = False

    def check(self) -> None:
        """Called in each turn of the loop, about once a second."""
        if not self._is_said and self._mirror.is_started:
            self._say()
        self._service.turn(lambda: "; ".join(self._view.get().words), is_ready=self._is_said)

    def _say(self) -> None:
        up = self._mirror.up()
        took_s = time.monotonic() - self._began
        silent = sorted(alias for alias, is_up in up.items() if not is_up)
        if not silent:
            reached = f", reached {' and '.join(sorted(up))}" if up else ""
            _log.info("started in %.1f s%s; Ctrl-C or SIGTERM stops in order", took_s, reached)
            self._is_said = True
        elif not self._is_waiting:
            _log.info("Spark is ready after %.1f s; waiting for %s", took_s, " and ".join(silent))
            self._is_waiting = True


def _named(flow: ConfiguredFlow) -> str:
    return str(flow.flow) if flow.source is not None else f"{flow.flow} (only heartbeats)"


def _serve(
    mirror: "MirrorMaker", metrics: Metrics, arguments: argparse.Namespace, flows: Sequence[ConfiguredFlow]
) -> None:
    """Serve until the process ends. Raises SparkmirrorError for an address that can't be used."""
    if arguments.http is not None:
        server = serve_pages(mirror, metrics, arguments.http, flows)
        mirror.show_page(f"{shown_url(arguments.http.listener, server)}/ui/")
    if arguments.metrics_port is not None:
        serve_metrics(mirror, metrics, arguments.metrics_port)
