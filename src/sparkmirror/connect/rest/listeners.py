"""The sockets of the REST API: bound before anything else, so that a taken port is said at once."""

import socket
from collections.abc import Sequence
from typing import Final, NamedTuple

from sparkmirror.connect.rest.settings import HTTP, Advertised, Listener
from sparkmirror.domain.errors import ConfigError

_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - what users write, not what we choose


class Bound(NamedTuple):
    """A listener and its socket."""

    listener: Listener
    socket: socket.socket

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


def bind_all(listeners: Sequence[Listener], key: str) -> list[Bound]:
    """Raises ConfigError, about the key, when one of them can't be had; then none is."""
    bound: list[Bound] = []
    try:
        for listener in listeners:
            bound.append(Bound(listener, _bind(listener)))
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
    """Where other workers find this one: what the operator says, else the first listener, http before https.

    A listener on all addresses is advertised as this machine's own.
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
    """As Java's InetAddress.getLocalHost."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
