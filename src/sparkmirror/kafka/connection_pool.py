"""Opens connections to the brokers of a cluster and keeps one for each broker.

All connections of the blocking clients are opened here by `Connection.open`, as the links of the copy loop
are. That is the place where a connection is secured: TLS in its transport, SASL after ApiVersions.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.kafka.connection import Connection

Address = tuple[str, int]
"""Host and port."""

Open = Callable[[Address, ConnectionSettings], Connection]

_known_brokers: dict[tuple[Address, ...], Sequence[Address]] = {}
"""By bootstrap servers: the brokers that the last Metadata response in this process named."""

_unreachable: set[Address] = set()
"""Addresses to which the last attempt of this process to connect failed."""


def remember_brokers(settings: ConnectionSettings, brokers: Sequence[Address]) -> None:
    """Note which brokers a Metadata response named, for `addresses`."""
    _known_brokers[settings.bootstrap_servers] = brokers


def addresses(settings: ConnectionSettings) -> Sequence[Address]:
    """Addresses to try: the brokers that Metadata named last, then the bootstrap servers.

    A process that has once reached a cluster finds it again when its bootstrap servers are gone or were named
    for other brokers, as Java's clients do (KIP-899). Addresses that could not be reached the last time come
    last: a broker that hangs delays a process once, and not each time that it asks any broker.
    """
    known = list(_known_brokers.get(settings.bootstrap_servers, ()))
    random.shuffle(known)
    return sorted(dict.fromkeys([*known, *settings.bootstrap_servers]), key=_unreachable.__contains__)


class ConnectionPool:
    """Not thread-safe: one owner. Connects on demand."""

    def __init__(self, settings: ConnectionSettings, open_connection: Open | None = None) -> None:
        """`open_connection` replaces `Connection.open`."""
        self._settings = settings
        self._open = open_connection or _open
        self._connections: dict[Address, Connection] = {}
        self._last: Address | None = None

    def kept(self, address: Address | None) -> Connection | None:
        """The open connection to a broker; for None the one that `any` returned last."""
        chosen = self._last if address is None else address
        return None if chosen is None else self._connections.get(chosen)

    def to(self, address: Address, timeout_s: float | None = None) -> Connection:
        """The connection to this broker, within `connect_timeout_s` or less. Raises DisconnectedError."""
        connection = self._connections.get(address)
        if connection is None:
            known = self._settings
            limit_s = min(
                known.connect_timeout_s, known.request_timeout_s, timeout_s or known.connect_timeout_s
            )
            try:
                connection = self._open(address, replace(known, connect_timeout_s=limit_s))
            except DisconnectedError:
                _unreachable.add(address)
                raise
            _unreachable.discard(address)
            self._connections[address] = connection
        return connection

    def any(self, timeout_s: float | None = None) -> Connection:
        """The connection to any broker: the one of the last call, else to the first that responds.

        Raises DisconnectedError naming every address tried.
        """
        kept = self.kept(None)
        if kept is not None:
            return kept
        failures = []
        for address in addresses(self._settings):
            try:
                connection = self.to(address, timeout_s)
            except DisconnectedError as error:
                failures.append(str(error))
            else:
                self._last = address
                return connection
        raise DisconnectedError("; ".join(dict.fromkeys(failures)))

    def drop(self, connection: Connection) -> None:
        """Close a connection that failed."""
        connection.close()
        self._connections = {
            address: kept for address, kept in self._connections.items() if kept is not connection
        }

    def close(self) -> None:
        """Close all of them; a later call opens new ones."""
        while self._connections:
            self._connections.popitem()[1].close()


def _open(address: Address, settings: ConnectionSettings) -> Connection:
    return Connection.open(*address, settings)
