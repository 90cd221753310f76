"""What the REST API asks of the node that serves it. Connect's word for it is herder."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sparkmirror.domain.connect import (
    ConnectorConfig,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Health,
    Status,
    TargetState,
)


class Herder(Protocol):
    """Every method may be called from any thread, and blocks; none for longer than a request may take.

    Those that only ask, `offsets` apart, look at what the node has in memory: they are called on the server's
    event loop, where hundreds of clients that poll cost no threads.

    What is not there, or not allowed, raises ConnectError with Connect's own status and message. What changes
    state, and offsets, belong to the leader: elsewhere they raise NotLeaderError, and the request is sent on.
    """

    def health(self) -> Health: ...

    def kafka_cluster_id(self) -> str: ...

    @property
    def leader_url(self) -> str | None:
        """Where the leader is, as far as is known; None while nobody is known to lead."""
        ...

    def session_key(self) -> bytes | None:
        """With which nodes sign what they send each other (KIP-507); None before one is known."""
        ...

    # answered by any node, from what it has read

    def connectors(self) -> Sequence[str]: ...

    def info(self, name: str) -> ConnectorInfo: ...

    def task_configs(self, name: str) -> Sequence[ConnectorConfig]: ...

    def status(self, name: str) -> ConnectorStatus: ...

    def task_status(self, name: str, task: int) -> Status: ...

    def active_topics(self, name: str) -> Sequence[str]: ...

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Read from their topic."""
        ...

    # done by the leader

    def create(
        self, name: str, config: ConnectorConfig, initial_state: TargetState | None
    ) -> ConnectorInfo: ...

    def put(self, name: str, config: ConnectorConfig) -> tuple[bool, ConnectorInfo]:
        """Whether it was created, and what it is now."""
        ...

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo: ...

    def delete(self, name: str) -> None: ...

    def change_state(self, name: str, state: TargetState) -> None: ...

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus: ...

    def restart_task(self, name: str, task: int) -> None: ...

    def reset_active_topics(self, name: str) -> None: ...

    def alter_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None: ...

    def reset_offsets(self, name: str) -> None: ...

    def plan(self, name: str) -> Mapping[str, Any]:
        """What a source connector would do now, as JSON; both of its clusters are asked for it."""
        ...

    def set_log_level(self, logger: str, level: str) -> None:
        """On all nodes, also those that start later."""
        ...
