"""Implements a herder in memory, so that the REST API is tested without a cluster.

It does what a Connect worker does at once: connectors run when they are created, with one task each.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from sparkmirror.config.properties import Properties
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.validation import Infos, invalid_config_message, validate
from sparkmirror.domain.connect import (
    ConnectError,
    ConnectorConfig,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Health,
    NotLeaderError,
    State,
    Status,
    TargetState,
)
from sparkmirror.metrics.looks import VerifyLook

WORKER = "127.0.0.1:8083"
_STATES = {TargetState.RUNNING: State.RUNNING, TargetState.PAUSED: State.PAUSED}
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
    "specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)


class MemoryHerder(Herder):
    """A herder in memory; `leader_url` is the leader's URL if this one is not the leader."""

    leader_url: str | None = None
    worker = Properties()
    """The worker's properties, with its config providers."""

    def __init__(self, *, leads: bool = True, leader_url: str | None = None) -> None:
        self.leads = leads
        self.leader_url = leader_url
        self.now = Health(
            started=True,
            healthy=True,
            message="Worker has completed startup and is ready to handle requests.",
        )
        self.log_levels: list[tuple[str, str]] = []
        self.notes: list[tuple[str, str]] = []
        self.planned: Mapping[str, Any] | None = None
        self.compared: VerifyLook | None = None
        self._ran: set[str] = set()
        self._changing = threading.RLock()
        self._written: dict[str, ConnectorConfig] = {}
        self._states: dict[str, TargetState] = {}
        self._offsets: dict[str, list[ConnectorOffset]] = {}

    def health(self) -> Health:
        return self.now

    def kafka_cluster_id(self) -> str:
        return "a-cluster"

    def connectors(self) -> Sequence[str]:
        return list(self._written)

    def validate(self, plugin: str | None, config: Mapping[str, str | None]) -> Infos:
        return validate(plugin, config, self.worker)

    def info(self, name: str) -> ConnectorInfo:
        return ConnectorInfo(name, self._known(name), self._tasks(name))

    def task_configs(self, name: str) -> Sequence[ConnectorConfig]:
        config = self._known(name)
        return [{**config, "task.class": "a.Task"} for _ in range(self._tasks(name))]

    def status(self, name: str) -> ConnectorStatus:
        if name not in self._written:
            raise _not_found(f"No status found for connector {name}")
        state = self._states[name]
        connector = Status(_STATES.get(state, State.STOPPED), WORKER, 1)
        return ConnectorStatus(name, connector, dict.fromkeys(range(self._tasks(name)), connector))

    def task_status(self, name: str, task: int) -> Status:
        if name not in self._written or task not in range(self._tasks(name)):
            raise _not_found(f"No status found for task {name}-{task}")
        return self.status(name).tasks[task]

    def active_topics(self, name: str) -> Sequence[str]:
        return ["heartbeats"] if name in self._written else []

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        self._known(name)
        return self._offsets.get(name, [])

    def create(self, name: str, config: ConnectorConfig, initial_state: TargetState | None) -> ConnectorInfo:
        with self._leading():
            if name in self._written:
                raise ConnectError(HTTPStatus.CONFLICT, f"Connector {name} already exists")
            self._store(name, config)
            self._be(name, initial_state or TargetState.RUNNING)
            return ConnectorInfo(name, self._known(name), 0)

    def put(self, name: str, config: ConnectorConfig) -> tuple[bool, ConnectorInfo]:
        with self._leading():
            created = name not in self._written
            self._store(name, config)
            if created:
                self._be(name, TargetState.RUNNING)
            return created, ConnectorInfo(name, self._known(name), 0 if created else self._tasks(name))

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        with self._leading():
            merged = {**self._known(name), **changes}
            self._store(name, {key: value for key, value in merged.items() if value is not None})
            return self.info(name)

    def delete(self, name: str) -> None:
        with self._leading():
            self._known(name)
            del self._written[name], self._states[name]
            self._ran.discard(name)

    def change_state(self, name: str, state: TargetState) -> None:
        with self._leading():
            if name not in self._written:
                raise _not_found(f"Unknown connector {name}")
            self._be(name, state)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        with self._leading():
            self._require(name)
            status = self.status(name)
            if only_failed:
                return status
            again = replace(status.connector, state=State.RESTARTING)
            tasks = dict.fromkeys(status.tasks, again) if include_tasks else status.tasks
            return ConnectorStatus(name, again, tasks)

    def note(self, name: str, text: str) -> None:
        with self._leading():
            self.notes.append((name, text))

    def restart_task(self, name: str, task: int) -> None:
        with self._leading():
            self._require(name)
            if task not in range(self._tasks(name)):
                raise _not_found(f"Unknown task: {name}-{task}")

    def reset_active_topics(self, name: str) -> None:  # noqa: ARG002 - it has none to forget
        with self._leading():
            pass

    def alter_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        with self._leading():
            self._require_stopped(name)
            self._offsets[name] = [item for item in offsets if item.offset is not None]

    def reset_offsets(self, name: str) -> None:
        with self._leading():
            self._require_stopped(name)
            self._offsets.pop(name, None)

    def plan(self, name: str) -> Mapping[str, Any]:
        with self._leading():
            self._known(name)
            return self.planned or {"connector": name}

    def verify(self, name: str) -> None:
        with self._leading():
            self._known(name)
            if self.compared is not None and self.compared.ended_at is None:
                raise ConnectError(HTTPStatus.CONFLICT, f"Connector {name} is being verified already")
            self.compared = VerifyLook(1_700_000_000.0, progress="Reading both clusters …")

    def verification(self, name: str) -> VerifyLook | None:
        with self._leading():
            self._known(name)
            return self.compared

    def set_log_level(self, logger: str, level: str) -> None:
        with self._leading():
            self.log_levels.append((logger, level))

    def _leading(self) -> threading.RLock:
        if not self.leads:
            raise NotLeaderError(self.leader_url)
        return self._changing

    def _known(self, name: str) -> ConnectorConfig:
        if name not in self._written:
            raise _not_found(f"Connector {name} not found")
        return self._written[name]

    def _require(self, name: str) -> None:
        if name not in self._written:
            raise _not_found(f"Unknown connector: {name}")

    def _require_stopped(self, name: str) -> None:
        self._known(name)
        if self._states[name] is not TargetState.STOPPED:
            raise ConnectError(HTTPStatus.BAD_REQUEST, _NOT_STOPPED.format(name=name))

    def _tasks(self, name: str) -> int:
        """Return the tasks; a connector that was paused before its first run has none."""
        return 1 if self._states[name] is not TargetState.STOPPED and name in self._ran else 0

    def _be(self, name: str, state: TargetState) -> None:
        self._states[name] = state
        if state is TargetState.RUNNING:
            self._ran.add(name)

    def _store(self, name: str, config: ConnectorConfig) -> None:
        infos = self.validate(None, config)
        if infos["error_count"]:
            raise ConnectError(HTTPStatus.BAD_REQUEST, invalid_config_message(infos))
        self._written[name] = dict(config)


def _not_found(message: str) -> ConnectError:
    return ConnectError(HTTPStatus.NOT_FOUND, message)
