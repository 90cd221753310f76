"""Opens connections to the brokers of a cluster and keeps one for each broker.

All connections of the blocking clients are opened here by `Connection.open`, as the links of the copy loop
are. That is the place where a connection is secured: TLS in its transport, SASL after ApiVersions. Pools on
the same network share what they learn of brokers (`domain.known_brokers`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ClusterChangedError, DisconnectedError
from sparkmirror.domain.known_brokers import Address
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.transport import network_of

Open = Callable[[Address, ConnectionSettings], Connection]


class ConnectionPool:
    """Opens connections on demand. Not thread-safe."""

    def __init__(self, settings: ConnectionSettings, open_connection: Open | None = None) -> None:
        """`open_connection` replaces `Connection.open`."""
        self._settings = settings
        self._known = network_of(settings).known_brokers
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
                self._known.note_failure(address)
                raise
            self._known.note_success(address)
            self._connections[address] = connection
        return connection

    def any(self, timeout_s: float | None = None) -> Connection:
        """The connection to any broker: the one of the last call, else to the first that responds.

        Raises DisconnectedError naming every address tried, ClusterChangedError where only
        another cluster answers.
        """
        kept = self.kept(None)
        if kept is not None:
            return kept
        failures = []
        changed: ClusterChangedError | None = None
        for address in self._known.addresses(self._settings.bootstrap_servers):
            try:
                connection = self.to(address, timeout_s)
            except DisconnectedError as error:
                failures.append(str(error))
            except ClusterChangedError as error:
                changed = error
            else:
                self._last = address
                return connection
        if changed is not None:
            raise changed
        raise DisconnectedError("; ".join(dict.fromkeys(failures)))

    def note_brokers(self, addresses: Sequence[Address]) -> None:
        """A Metadata response named these brokers: `any` tries them from now on."""
        self._known.note_metadata(self._settings.bootstrap_servers, addresses)

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
