"""Keeps a node a member of its worker group, in a thread of its own."""

import threading
from collections.abc import Callable
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.leader_election import NOT_A_MEMBER, GroupOptions, Membership
from sparkmirror.kafka.groups.worker_membership import GroupMember

__all__ = ["NOT_A_MEMBER", "GroupOptions", "Membership", "WorkerGroup"]

_LEAVE_TIMEOUT_S: Final = 2.0


class WorkerGroup(GroupMember):
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
        super().__init__(settings, options, url, on_change)
        self._thread = threading.Thread(target=self.run, name="worker group", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Leave the group so that others take over at once. Returns within 2 s, whatever the brokers do."""
        if self._thread.ident is None:
            self.close()
            return
        self.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(_LEAVE_TIMEOUT_S)
