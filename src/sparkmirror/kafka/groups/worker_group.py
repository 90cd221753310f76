"""Keeps a node a member of its worker group, in a thread of its own."""

import threading
from collections.abc import Callable
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.leader_election import NOT_A_MEMBER, GroupOptions, Membership
from sparkmirror.kafka.groups.worker_membership import GroupMember

__all__ = ["NOT_A_MEMBER", "GroupOptions", "Membership", "WorkerGroup"]

_LEAVE_TIMEOUT_S: Final = 2.0


class WorkerGroup:
    """`start` once, `leave` at the end. Properties and `leave` are safe in any thread."""

    def __init__(
        self,
        settings: ConnectionSettings,
        options: GroupOptions,
        url: str,
        on_change: Callable[[Membership], None],
    ) -> None:
        """`url` is where other nodes reach this one; `on_change` is to return quickly.

        It is called from the group's own thread, and not any more once `leave` was called.
        """
        self._member = GroupMember(settings, options, url, on_change)
        self._thread = threading.Thread(target=self._member.run, name="worker group", daemon=True)

    @property
    def membership(self) -> Membership:
        """Return the membership: NOT_A_MEMBER as soon as the coordinator may have removed this node."""
        return self._member.membership

    @property
    def failure(self) -> SparkmirrorError | None:
        """The error that ended the membership for good."""
        return self._member.failure

    @property
    def trouble(self) -> SparkmirrorError | None:
        """The error of the last attempt to reach the coordinator, while it is retried."""
        return self._member.trouble

    @property
    def coordinator(self) -> Address:
        """Return the address of the group's last known coordinator."""
        return self._member.coordinator

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Leave the group so that others take over at once. Returns within 2 s, whatever the brokers do."""
        if self._thread.ident is None:
            self._member.close()
            return
        self._member.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(_LEAVE_TIMEOUT_S)
