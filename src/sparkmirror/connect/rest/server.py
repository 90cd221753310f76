"""Serves the REST API: one thread with an event loop for all listeners. Signals stay with the main thread.

Sockets are bound before anything else starts, so that a taken port is reported at once.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp

from sparkmirror.connect.rest.connections import Connections, Limits
from sparkmirror.connect.rest.mirror_app import ConnectApp
from sparkmirror.connect.rest.rest_settings import HTTP, HTTPS, Advertised, Listener, RestSettings
from sparkmirror.connect.rest.tls import RestTls, ServerContext
from sparkmirror.domain.errors import ConfigError

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S: Final = 3
_USUAL: Final = Limits()


_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with users' values, not bound


class Bound(NamedTuple):
    """A listener and its bound socket."""

    listener: Listener
    socket: socket.socket

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


def bind_all(listeners: Sequence[Listener], key: str) -> list[Bound]:
    """Raises ConfigError for the key when one of them can't be bound, and closes the others."""
    bound: list[Bound] = []
    try:
        for listener in listeners:
            served = _bind(listener)
            bound.append(Bound(listener, served))
            # Connections inherit it. asyncio sets it only where a socket names its protocol, and without it
            # every second answer on a connection waits 40 ms for the client's acknowledgement.
            served.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        close_all(bound)
        raise ConfigError(key, str(listener), f"Can't listen there: {error.strerror or error}") from error
    return bound


def close_all(bound: Sequence[Bound]) -> None:
    for each in bound:
        each.socket.close()


def _bind(listener: Listener) -> socket.socket:
    if listener.host == "" and socket.has_dualstack_ipv6():
        return socket.create_server(("", listener.port), family=socket.AF_INET6, dualstack_ipv6=True)
    found = socket.getaddrinfo(
        listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, *_, address = found[0]
    return socket.create_server(address[:2], family=family)


def advertised_url(bound: Sequence[Bound], advertised: Advertised) -> str:
    """The URL for other workers: as configured, else of the first listener, http before https.

    A listener on all addresses is advertised with this machine's own address.
    """
    protocol = advertised.protocol or _protocol(bound)
    at = next(each for each in bound if each.listener.protocol == protocol)
    host = advertised.host or at.listener.host
    if host in _EVERYWHERE:
        host = _own_address()
    if ":" in host:
        host = f"[{host}]"
    return f"{protocol}://{host}:{advertised.port or at.port}/"


def _protocol(bound: Sequence[Bound]) -> str:
    protocols = {each.listener.protocol for each in bound}
    return HTTP if HTTP in protocols else protocols.pop()


def _own_address() -> str:
    """Resolve this machine's name, as Java's InetAddress.getLocalHost does."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


class RestServer:
    """Call `bind`, `start` and `stop`, in this order, once each."""

    def __init__(self, settings: RestSettings, limits: Limits = _USUAL) -> None:
        self._settings = settings
        self._limits = limits
        self._main: list[Bound] = []
        self._admin: list[Bound] = []
        self._servers: list[_Listener] = []
        self._thread: threading.Thread | None = None

    def bind(self, key: str = "listeners") -> None:
        """Bind the addresses; `advertised_url` is known afterwards. Raises ConfigError for the key."""
        self._main = bind_all(self._settings.listeners, key)
        try:
            self._admin = bind_all(self._settings.admin_listeners or (), "admin.listeners")
        except BaseException:
            close_all(self._main)
            raise

    @property
    def advertised_url(self) -> str:
        """`http://host:port/`, the URL for other workers."""
        return advertised_url(self._main, self._settings.advertised)

    @property
    def urls(self) -> list[str]:
        """The listeners' URLs, with the bound ports."""
        return [str(each.listener._replace(port=each.port)) for each in (*self._main, *self._admin)]

    def start(self, app: ConnectApp) -> None:
        """Return once requests are served. Raises ConfigError for an unusable key."""
        self._servers = [
            *(_Listener(app.main, each, self._settings.tls, self._limits) for each in self._main),
            *(
                _Listener(app.admin, each, self._settings.admin_tls, self._limits)
                for each in self._admin
                if app.admin
            ),
        ]
        sockets = [each.socket for each in (*self._main, *self._admin)]
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(sockets, started), name="rest-server", daemon=True
        )
        self._thread.start()
        started.wait()

    def stop(self) -> None:
        """Finish open requests, within some seconds, and close everything. May be called at any time."""
        for server in self._servers:
            server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        close_all([*self._main, *self._admin])

    def _run(self, sockets: list[socket.socket], started: threading.Event) -> None:
        try:
            asyncio.run(self._serve(sockets, started))
        finally:
            started.set()

    async def _serve(self, sockets: list[socket.socket], started: threading.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for server, at in zip(self._servers, sockets, strict=True):
                group.create_task(server.serve(sockets=[at]))
            for server in self._servers:
                await server.serving.wait()
            started.set()


class _Listener(uvicorn.Server):
    """Sets `serving` when it serves, and closes connections that are left at its end."""

    def __init__(self, app: ASGIApp, at: Bound, tls: RestTls | None, limits: Limits) -> None:
        context, has_certificates = None, False
        if at.listener.protocol == HTTPS:
            assert tls is not None, "settings have TLS where there is an https listener"
            context, has_certificates = ServerContext(tls), tls.client_auth != "none"
        self._context = context
        self._connections = Connections(app, limits, has_certificates)
        super().__init__(_config(self._connections, context, limits))
        self._connections.open = self.server_state.connections
        self.config.callback_notify = self._each_second
        self.serving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._connections.end_idle()
        await super().shutdown(sockets)
        self._connections.end_all()

    async def _each_second(self) -> None:
        self._connections.end_slow()
        if self._context is not None:
            await asyncio.to_thread(self._context.renew)


def _config(app: ASGIApp, context: ServerContext | None, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections_max,
        timeout_keep_alive=limits.kept_idle_s,
        timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
        timeout_notify=0,  # that is, about once a second
    )
