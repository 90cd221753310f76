"""Serves the REST API: one thread with an event loop for all listeners. Signals stay with the main thread."""

import asyncio
import logging
import socket
import threading
from functools import partial
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from sparkmirror.connect.rest.app import ConnectApp
from sparkmirror.connect.rest.connections import KEPT_IDLE_S, TimeoutProtocol
from sparkmirror.connect.rest.listeners import Bound, advertised_url, bind_all, close_all
from sparkmirror.connect.rest.rest_settings import HTTPS, RestSettings
from sparkmirror.connect.rest.tls import RestTls, ServerContext

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S: Final = 3


class RestServer:
    """Call `bind`, `start` and `stop`, in this order, once each."""

    def __init__(self, settings: RestSettings, protocol: type[TimeoutProtocol] = TimeoutProtocol) -> None:
        """`protocol` has the time-outs of connections."""
        self._settings = settings
        self._protocol = protocol
        self._main: list[Bound] = []
        self._admin: list[Bound] = []
        self._servers: list[_ListenerServer] = []
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
            *(self._server(app.main, each, self._settings.tls) for each in self._main),
            *(self._server(app.admin, each, self._settings.admin_tls) for each in self._admin if app.admin),
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

    def _server(self, app: ASGIApp, at: Bound, tls: RestTls | None) -> "_ListenerServer":
        return _ListenerServer(_config(app, at, tls, self._protocol))

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
    """Sets `serving` when it serves, and closes connections that are left at its end."""

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


def _config(app: ASGIApp, at: Bound, tls: RestTls | None, protocol: type[TimeoutProtocol]) -> uvicorn.Config:
    context = None
    if at.listener.protocol == HTTPS:
        assert tls is not None, "settings have TLS where there is an https listener"
        context = ServerContext(tls)
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEPT_IDLE_S,
        timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
        callback_notify=None if context is None else partial(asyncio.to_thread, context.renew),
        timeout_notify=0,  # that is, about once a second
    )
