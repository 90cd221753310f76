"""Serves `/metrics` over HTTP, for a process that has no other server.

It serves GET and HEAD of one path, drops slow clients after a timeout, and holds a bounded number of
connections. prometheus_client's server has none of these limits, serves every path, refuses HEAD and renders
the page for each request. No TLS and no login, as Prometheus' JMX exporter without a configuration: bind it
to an address that only Prometheus reaches.
"""

import logging
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.metrics.compression import gzipped, takes_gzip
from sparkmirror.metrics.page import Page

_log = logging.getLogger(__name__)

PATH: Final = "/metrics"
CONNECTIONS_MAX: Final = 16
_CLIENT_TIMEOUT_S = 10.0


class MetricsServer:
    """Binds and serves when it is created; raises SparkmirrorError when the address can't be bound.

    An empty `host` means every address of the machine.
    """

    def __init__(
        self,
        host: str,
        port: int,
        page: Callable[[], Page],
        *,
        client_timeout_s: float = _CLIENT_TIMEOUT_S,
    ) -> None:
        self._server = _bound(host, port, page, client_timeout_s)
        self.port: int = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _bound(host: str, port: int, page: Callable[[], Page], client_timeout_s: float) -> "_Server":
    try:
        return _Server(_listening(host, port), page, client_timeout_s)
    except OSError as error:
        reason = error.strerror or error
        raise SparkmirrorError(
            f"metrics can't be served at {host or 'any address'}, port {port}: {reason}; "
            "choose another one with --metrics-port"
        ) from error


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0] if host else socket.AF_INET
    return socket.create_server((host, port), family=family)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listening: socket.socket, page: Callable[[], Page], client_timeout_s: float) -> None:
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.page = page
        self.client_timeout_s = client_timeout_s
        self._free_connections = threading.BoundedSemaphore(CONNECTIONS_MAX)

    def process_request(self, request: object, client_address: object) -> None:
        """Close connections beyond the maximum at once: Prometheus scrapes again."""
        if self._free_connections.acquire(blocking=False):
            super().process_request(request, client_address)  # type: ignore[arg-type]
        else:
            self.shutdown_request(request)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._free_connections.release()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Log errors other than those of a client that disconnected."""
        if not isinstance(sys.exception(), OSError):
            _log.exception("the metrics page could not be rendered")


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.client_timeout_s)

    def do_GET(self) -> None:
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        self._respond(with_body=False)

    def _respond(self, *, with_body: bool) -> None:
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, explain=f"There is only {PATH} here.")
            return
        content_type, body = self.server.page()
        is_compressed = takes_gzip(self.headers.get("Accept-Encoding"))
        if is_compressed:
            body = gzipped(body)
        self.send_response(HTTPStatus.OK)
        self.send_header("Vary", "Accept-Encoding")
        if is_compressed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log no requests."""
