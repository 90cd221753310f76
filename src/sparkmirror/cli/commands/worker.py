"""Defines `sparkmirror worker`, a node of a Connect group: the counterpart of `connect-distributed.sh`."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparkmirror import __version__
from sparkmirror.cli.exit_codes import CANNOT_TELL, NOT_FINE
from sparkmirror.cli.http_server import add_metrics_arguments, serve_metrics
from sparkmirror.cli.logging import add_logging_arguments
from sparkmirror.cli.process import stop_on_signals
from sparkmirror.cli.service_manager import ServiceManager
from sparkmirror.config.metrics_options import metrics_options
from sparkmirror.config.properties import Properties, read_properties
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.rest_settings import RestSettings, exposure, rest_settings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.connect.worker_file import WorkerFile, worker_file
from sparkmirror.domain.connect import NotLeaderError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.page import Metrics
from sparkmirror.metrics.settings import metrics_settings
from sparkmirror.spark.log_files import spark_log_file
from sparkmirror.spark.required import require_spark
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node as ViewedNode

if TYPE_CHECKING:
    from sparkmirror.connect.worker_node import WorkerNode

_log = logging.getLogger("sparkmirror.worker")

SWITCH_INTERVAL_S = 0.0005
"""The longest wait of the REST API's thread for another thread after a system call: with Python's 5 ms,
clients that poll would wait while connectors start."""

_EXAMPLES = """\
  sparkmirror worker connect-distributed.properties
  curl -X PUT -H 'Content-Type: application/json' --data @mm2-msc.json \\
       http://localhost:8083/connectors/mm2-msc/config

The file is a Connect worker's: bootstrap.servers, group.id, the three storage topics, listeners, …;
spark.* keys go to Spark. Start any number of nodes with the same group.id: one leads and runs the
connectors, each serves the REST API, and another one takes over when the leader is lost.

http://localhost:8083/ui/ shows what the mirrors do, http://localhost:8083/docs the whole REST API, which is
that of Kafka Connect.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "worker",
        description="Run a node of a Connect group, whose REST API configures MirrorMaker's connectors, "
        "until SIGINT, SIGTERM or SIGHUP.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the worker's connect-distributed.properties")
    parser.add_argument("--master", help="Spark's master URL (default: spark.master of the file, or local)")
    parser.add_argument(
        "--log-file", type=Path, help="file for Spark's own log (default: a new temporary file)"
    )
    add_metrics_arguments(parser)
    add_logging_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    began, service = time.monotonic(), ServiceManager()
    try:
        file, rest = _read(arguments.file, arguments.master)
        options = metrics_options(file.properties)
        names = metrics_settings(options._replace(rules=arguments.metrics_rules or options.rules))
        server = RestServer(rest)
        server.bind()
    except SparkmirrorError as error:
        named = str(error).startswith(f"{arguments.file}: ")  # as errors of reading it are
        _log.error("%s", error if named else f"{arguments.file}: {error}")
        return CANNOT_TELL
    require_spark()
    from sparkmirror.connect.rest.app import Node, connect_app  # noqa: PLC0415 - needs PySpark, the parser does not
    from sparkmirror.connect.worker_node import WorkerNode, worker_id  # noqa: PLC0415 - likewise

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    levels = LogLevels()
    node = WorkerNode(file, server.advertised_url, arguments.log_file or spark_log_file("worker"), levels)
    metrics = Metrics(node.readings, names, node.node_reading)
    try:
        if arguments.metrics_port is not None:
            serve_metrics(_Shown(node), metrics, arguments.metrics_port)
    except SparkmirrorError as error:
        _log.error("%s", error)
        return CANNOT_TELL
    try:
        view = _view(node, worker_id(server.advertised_url))
        served = Node(node.herder, levels, metrics.page, view)
        server.start(connect_app(served, rest))
        _log.info("REST API listens at %s, advertised as %s", ", ".join(server.urls), server.advertised_url)
        stop_on_signals(node.stop)
        node.start()
        _log.info("started in %.1f s; Ctrl-C or SIGTERM stops in order", time.monotonic() - began)
        node.wait(_Told(node, service, view).turn)
    except SparkmirrorError as error:
        _log.error("%s", error)
        return NOT_FINE
    finally:
        service.stopping()
        node.close()
        server.stop()
    _log.info("stopped")
    return 0


class _Told:
    """Tells the service manager of the node while its own thread makes turns, not only the one that waits."""

    def __init__(self, node: "WorkerNode", service: ServiceManager, view: CurrentView) -> None:
        self._node = node
        self._service = service
        self._view = view
        self._turns = 0

    def turn(self) -> None:
        before, self._turns = self._turns, self._node.turns
        if self._turns != before:
            self._service.turn(self._status, is_ready=self._node.herder.health().healthy)

    def _status(self) -> str:
        try:
            words = self._view.get().words
        except NotLeaderError as error:
            words = [] if error.leader_url is None else [str(error)]
        return "; ".join(words) or self._node.herder.health().message


class _Shown:
    """A node for the address of `--metrics-port`: only the leader has connectors to tell of."""

    def __init__(self, node: "WorkerNode") -> None:
        self._node = node

    @property
    def is_started(self) -> bool:
        return self._node.herder.health().started

    def looks(self) -> Sequence[ConnectorLook]:
        try:
            return self._node.looks()
        except NotLeaderError:
            return ()


def _view(node: "WorkerNode", name: str) -> CurrentView:
    """Make the view of the leader's connectors, for `/mirror` and the pages."""
    return CurrentView(lambda: ViewedNode(name, __version__, node.node_urls()), node.looks)


def _read(path: Path, master: str | None) -> tuple[WorkerFile, RestSettings]:
    properties = read_properties(path)
    if master:
        properties |= Properties({"spark.master": master})
    file = worker_file(properties, os.environ)
    for warning in file.warnings:
        _log.warning("%s: %s", path, warning)
    rest = rest_settings(file.properties, os.environ)
    exposed = exposure(file.properties, rest)
    if exposed is not None:
        _log.warning("%s: %s", path, exposed)
    return file, rest
