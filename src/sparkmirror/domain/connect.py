"""Defines the values of Kafka Connect's REST API and topics: connectors, tasks, states and offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

from sparkmirror.domain.errors import SparkmirrorError

ConnectorConfig = Mapping[str, str]
"""A connector's config as it was submitted, with `${provider:path:key}` unresolved."""


class TargetState(Enum):
    """The wanted state of a connector, by its name in the config topic."""

    RUNNING = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    """The connector has no tasks; only in this state offsets may be changed (KIP-875)."""


class State(Enum):
    """The state of a connector or task; STOPPED is for connectors only."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a connector or task. `worker_id` is `host:port`; `generation` is the worker group's."""

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    """Why it failed."""
    version: str | None = None
    """The version of the connector's class, where it runs (KIP-891)."""


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    name: str
    config: ConnectorConfig
    tasks: int


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    name: str
    connector: Status
    tasks: Mapping[int, Status]


@dataclass(frozen=True, slots=True)
class ConnectorOffset:
    """A source partition and the position in it, as the connector writes them; None removes the position."""

    partition: Mapping[str, object]
    offset: Mapping[str, object] | None


class Health(NamedTuple):
    """Whether a node can serve (KIP-1017). `started` is False until it has read its topics once."""

    started: bool
    healthy: bool
    message: str


class ConnectError(SparkmirrorError):
    """A request that can't be met, with the HTTP status of the response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotLeaderError(SparkmirrorError):
    """Says that only the group's leader can do this; None while there is none."""

    def __init__(self, leader_url: str | None) -> None:
        super().__init__(f"the leader is {leader_url or 'not known'}")
        self.leader_url = leader_url
