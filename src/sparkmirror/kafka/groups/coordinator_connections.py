"""Keeps a member's connections to its group's coordinator: one for requests, one for heartbeats aside.

Waits on them can be interrupted, but connecting can't.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.leader_election import GroupOptions
from sparkmirror.domain.network import InterruptedWaitError
from sparkmirror.kafka.cluster import Cluster, CoordinatorKind
from sparkmirror.kafka.groups import membership_requests as group_wire
from sparkmirror.kafka.groups.membership_requests import MemberIdentity, group_error
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.interruptible import InterruptibleConnection, Pause
from sparkmirror.kafka.wire.error_codes import NONE

_CONNECT_TIMEOUT_S: Final = 1.2
"""Connecting can't be interrupted. A SYN that is lost is sent again after a second."""
_LEAVE_RESPONSE_TIMEOUT_S: Final = 1.2


class CoordinatorConnections:
    """Connects to coordinators, for one thread. Methods raise RetriableError."""

    def __init__(
        self,
        settings: ConnectionSettings,
        options: GroupOptions,
        pause: Pause,
        await_response: Pause,
        connect_within_s: Callable[[], float],
    ) -> None:
        """`pause` waits for a broker, `await_response` for the coordinator, which may wait for others."""
        self.cluster = Cluster(settings, open_connection=self._open)
        self.address: Address = ("", 0)
        """The address of the last known coordinator."""
        self._settings = settings
        self._group_id = options.group_id
        self.response_timeout_s = max(0.5, (options.session_timeout_s - options.heartbeat_interval_s) / 2)
        self._pause = pause
        self._await_response = await_response
        self._connect_within_s = connect_within_s
        self._main: InterruptibleConnection | None = None
        self._aside: InterruptibleConnection | None = None

    def main(self) -> InterruptibleConnection:
        """The connection for requests, made where there is none. Errors name every address tried."""
        if self._main is None:
            found = self.cluster.coordinator(CoordinatorKind.GROUP, self._group_id, self.response_timeout_s)
            self.cluster.close()
            if found.code != NONE:
                raise group_error(found.code, self._group_id, "FindCoordinator", settings=self._settings)
            self.address = found.address
            self._main = self._connected(self.address, self._await_response)
        return self._main

    def aside(self) -> InterruptibleConnection:
        if self._aside is None:
            self._aside = self._connected(self.address, self._pause)
        return self._aside

    def leave(self, identity: MemberIdentity) -> None:
        """Send LeaveGroup once. Where it is lost, the others notice when the session has expired."""
        if self._main is None:
            return
        with suppress(SparkmirrorError, InterruptedWaitError):
            for connection in (self._main, self._aside):
                if connection is not None and not connection.is_busy:
                    group_wire.leave(connection, identity, _LEAVE_RESPONSE_TIMEOUT_S)
                    return
            step_s = _LEAVE_RESPONSE_TIMEOUT_S / 3
            with closing(self._connected(self.address, self._pause, step_s)) as connection:
                group_wire.leave(connection, identity, step_s)

    def close(self) -> None:
        self.cluster.close()
        self.close_aside()
        if self._main is not None:
            self._main.close()
            self._main = None

    def close_aside(self) -> None:
        if self._aside is not None:
            self._aside.close()
            self._aside = None

    def _open(self, address: Address, _settings: ConnectionSettings) -> Connection:
        return self._connected(address, self._pause)

    def _connected(
        self, address: Address, pause: Pause, response_timeout_s: float | None = None
    ) -> InterruptibleConnection:
        timeout_s = min(self._settings.connect_timeout_s, _CONNECT_TIMEOUT_S, self._connect_within_s())
        settings = replace(
            self._settings,
            connect_timeout_s=timeout_s,
            request_timeout_s=response_timeout_s or self.response_timeout_s,
        )
        return InterruptibleConnection.connect(address, settings, pause)
