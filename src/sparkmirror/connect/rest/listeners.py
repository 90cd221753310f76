"""Binds the REST API's sockets, before anything else starts, so that a taken port is reported at once."""

import socket
from collections.abc import Sequence
from typing import Final, NamedTuple

from sparkmirror.connect.rest.rest_settings import HTTP, Advertised, Listener
from sparkmirror.domain.errors import ConfigError

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
