"""The server of the REST API: a thread with an event loop for all listeners. Signals stay the main's."""

import asyncio
import logging
import socket
import threading
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from sparkmirror.connect.rest.app import ConnectApp
from sparkmirror.connect.rest.connections import KEPT_IDLE_S, PatientProtocol
from sparkmirror.connect.rest.listeners import Bound, advertised_url, bind_all, close_all
from sparkmirror.connect.rest.settings import HTTPS, RestSettings
from sparkmirror.connect.rest.tls import TlsSettings, server_context

logger = logging.getLogger(__name__)

_CONNECTIONS_MAX: Final = 1000
"""Of one listener; more are answered with 503."""
_STOP_TIMEOUT_S: Final = 3


class RestServer:
    """`bind`, `start`, `stop`, in this order; each once."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._main: list[Bound] = []
        self._admin: list[Bound] = []
        self._servers: list[_ListenerServer] = []
        self._thread: threading.Thread | None = None

    def bind(self) -> None:
        """Take the addresses; from here on `advertised_url` is known. Raises ConfigError."""
        self._main = bind_all(self._settings.listeners, "listeners")
        try:
            self._admin = bind_all(self._settings.admin_listeners or (), "admin.listeners")
        except BaseException:
            close_all(self._main)
            raise

    @property
    def advertised_url(self) -> str:
        """`http://host:port/`, where other workers find this one."""
        return advertised_url(self._main, self._settings.advertised)

    @property
    def urls(self) -> list[str]:
        """Where it listens, as bound."""
        return [str(each.listener._replace(port=each.port)) for each in (*self._main, *self._admin)]

    def start(self, app: ConnectApp) -> None:
        """Serve; returns when requests are answered. Raises ConfigError when a key can't be used."""
        self._servers = [
            *(_server(app.main, each, self._settings.tls) for each in self._main),
            *(_server(app.admin, each, self._settings.admin_tls) for each in self._admin if app.admin),
        ]
        sockets = [each.socket for each in (*self._main, *self._admin)]
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(sockets, started), name="rest-server", daemon=True
        )
        self._thread.start()
        started.wait()
        logger.info("REST API at %s, advertised as %s", ", ".join(self.urls), self.advertised_url)

    def stop(self) -> None:
        """End what is under way, within some seconds, and close everything. Harmless at any time."""
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


class _ListenerServer(uvicorn.Server):
    """Tells when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _server(app: ASGIApp, at: Bound, tls: TlsSettings | None) -> _ListenerServer:
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS_MAX,
        timeout_keep_alive=KEPT_IDLE_S,
        timeout_graceful_shutdown=_STOP_TIMEOUT_S,
    )
    config.load()
    if at.listener.protocol == HTTPS:
        assert tls is not None, "settings have TLS where there is an https listener"
        config.ssl = server_context(tls)
    return _ListenerServer(config)
