"""Declares the `Herder`: the calls that the REST API makes on the worker that serves it.

`connect.herder.Herder` implements it; tests have one in memory.
"""

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
from sparkmirror.metrics.looks import VerifyLook


class Herder(Protocol):
    """Every method may be called from any thread, and blocks; none for longer than a request may take.

    Methods that read, except `offsets` and `plan`, use what the node has in memory: they are called on the
    server's event loop, where hundreds of polling clients cost no threads.

    Unknown names and refused changes raise ConnectError with Connect's own status and message. Methods that
    change state run on the leader: on other nodes they raise NotLeaderError, and the request is forwarded.
    """

    def health(self) -> Health: ...

    def kafka_cluster_id(self) -> str: ...

    @property
    def leader_url(self) -> str | None:
        """The leader's URL; None while no leader is known."""
        ...

    def session_key(self) -> bytes | None:
        """The key that signs requests between nodes (KIP-507); None before one is known."""
        ...

    # on any node, from its copy of the topics

    def connectors(self) -> Sequence[str]: ...

    def info(self, name: str) -> ConnectorInfo: ...

    def task_configs(self, name: str) -> Sequence[ConnectorConfig]: ...

    def status(self, name: str) -> ConnectorStatus: ...

    def task_status(self, name: str, task: int) -> Status: ...

    def active_topics(self, name: str) -> Sequence[str]: ...

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Reads the offsets topic."""
        ...

    # on the leader

    def create(
        self, name: str, config: ConnectorConfig, initial_state: TargetState | None
    ) -> ConnectorInfo: ...

    def put(self, name: str, config: ConnectorConfig) -> tuple[bool, ConnectorInfo]:
        """Returns whether the connector was created, and its present state."""
        ...

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo: ...

    def delete(self, name: str) -> None: ...

    def change_state(self, name: str, state: TargetState) -> None: ...

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus: ...

    def note(self, name: str, text: str) -> None:
        """Add to the connector's events; when it runs again, if it does not now."""
        ...

    def restart_task(self, name: str, task: int) -> None: ...

    def reset_active_topics(self, name: str) -> None: ...

    def alter_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None: ...

    def reset_offsets(self, name: str) -> None: ...

    def plan(self, name: str) -> Mapping[str, Any]:
        """Return the plan of a source connector as JSON. Reads from both of its clusters."""
        ...

    def verify(self, name: str) -> None:
        """Begin to compare what a source connector has copied. ConnectError (409) while that goes on."""
        ...

    def verification(self, name: str) -> VerifyLook | None:
        """The comparison that goes on, or the last one of this run of the connector."""
        ...

    def set_log_level(self, logger: str, level: str) -> None:
        """Sets the level on all nodes, also those that start later."""
        ...
