"""Serves what a mirror shows: pages, `/mirror`, `/metrics`, `/health`. All of it can only be read."""

import argparse
import logging
import socket
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from starlette.types import ASGIApp

from sparkmirror.connect.rest.mirror_app import ConnectApp, metrics_app, mirror_app
from sparkmirror.connect.rest.rest_settings import HTTP, Listener, RestSettings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.page import Metrics
from sparkmirror.settings.configured import ConfiguredFlow
from sparkmirror.ui.current_view import CurrentView, this_process
from sparkmirror.ui.plans import plans_of

_log = logging.getLogger("sparkmirror.run")

_PORT_MAX: Final = 65535


class Address(NamedTuple):
    """An empty host means every address of the machine."""

    host: str
    port: int

    @property
    def listener(self) -> Listener:
        return Listener(HTTP, self.host, self.port)


def address(text: str) -> Address:
    """`[HOST:]PORT`; an IPv6 address is in brackets."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST:]PORT, for example 9404 or 127.0.0.1:9404")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def add_metrics_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--metrics-port` and `--metrics-rules`."""
    parser.add_argument(
        "--metrics-port",
        type=address,
        metavar="[HOST:]PORT",
        help="serve /metrics for Prometheus there, without authentication (0: a free port; default: none)",
    )
    parser.add_argument(
        "--metrics-rules",
        metavar="NAME|FILE",
        help="names of Java's metrics: connect, strimzi, strimzi-reporter, or a JMX exporter's rules file "
        "(default: metrics.rules of the file, or connect)",
    )


class Shown(Protocol):
    """A mirror that runs in this process, or that is watched."""

    @property
    def is_started(self) -> bool: ...

    def looks(self) -> Sequence[ConnectorLook]: ...


def serve_pages(
    mirror: Shown, metrics: Metrics, at: Address, flows: Sequence[ConfiguredFlow] = ()
) -> RestServer:
    """Serve until the process ends or the server is stopped.

    Raises SparkmirrorError for an unusable address.
    """
    settings = RestSettings(listeners=(at.listener,))
    app = mirror_app(current_view(mirror), metrics.page, lambda: mirror.is_started, settings, plans_of(flows))
    return _serve(app, settings, _Served("pages", "ui/", "--http"))


def serve_metrics(mirror: Shown, metrics: Metrics, at: Address) -> RestServer:
    """Serve `/metrics` and `/health` only."""
    app = metrics_app(current_view(mirror), metrics.page, lambda: mirror.is_started)
    settings = RestSettings(listeners=(at.listener,))
    return _serve(app, settings, _Served("metrics", "metrics", "--metrics-port"))


def current_view(mirror: Shown) -> CurrentView:
    return CurrentView(this_process, mirror.looks)


class _Served(NamedTuple):
    """Names what is served, its path, and the option that asks for it."""

    name: str
    path: str
    option: str


def _serve(app: ASGIApp, settings: RestSettings, served: _Served) -> RestServer:
    server, listener = RestServer(settings), settings.listeners[0]
    try:
        server.bind(served.option)
    except ConfigError as error:
        at = f"{listener.host or 'any address'}, port {listener.port}"
        raise SparkmirrorError(
            f"{served.name} can't be served at {at}: {error.reason}; "
            f"choose another address with {served.option}"
        ) from error
    server.start(ConnectApp(app))
    _log.info("%s are at %s/%s", served.name, shown_url(listener, server), served.path)
    return server


def shown_url(listener: Listener, server: RestServer) -> str:
    """Return the server's URL, with this machine's name where all addresses are served."""
    (bound,) = server.urls
    port = int(bound.rpartition(":")[2])
    return str(listener._replace(host=listener.host or socket.gethostname(), port=port))
