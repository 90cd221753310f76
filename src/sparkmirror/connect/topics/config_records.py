"""What Kafka Connect's config topic says, and its records in Connect's bytes.

A connector's tasks come one by one and count from the commit record on, so that nobody runs half of an old
set beside half of a new one (`connect_config_fold`).
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.connect import ConnectorConfig, TargetState
from sparkmirror.domain.connect_json import java_text, write_json

TARGET_STATE_KEY: Final = "target-state-"
CONNECTOR_KEY: Final = "connector-"
TASK_KEY: Final = "task-"
COMMIT_KEY: Final = "commit-"
RESTART_KEY: Final = "restart-connector-"
TASK_COUNT_KEY: Final = "tasks-fencing-"
SESSION_KEY: Final = "session-key"
LOGGER_KEY: Final = "logger-cluster-"
"""How keys begin; what follows is a name. The session key's is the whole of it."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """With which nodes sign what they send each other (KIP-507). `algorithm` is Java's name for it."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """KIP-745. `str()` is as Java words it."""

    connector: str
    include_tasks: bool
    only_failed: bool

    def __str__(self) -> str:
        flags = f"onlyFailed={java_text(self.only_failed)}, includeTasks={java_text(self.include_tasks)}"
        return f"restart request for {{connectorName='{self.connector}', {flags}}}"


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """What a logger is set to on all nodes (KIP-976)."""

    logger: str
    level: str


ConfigEvent = RestartRequest | LoggerLevel


@dataclass(frozen=True, slots=True)
class ConnectConfigs:
    """As of some offset. `task_configs` and `target_states` have every connector, and nothing else."""

    connectors: Mapping[str, ConnectorConfig] = field(default_factory=dict)
    task_configs: Mapping[str, Sequence[ConnectorConfig]] = field(default_factory=dict)
    """The last set that was committed whole; empty where there is none, or an inconsistent one since."""
    target_states: Mapping[str, TargetState] = field(default_factory=dict)
    inconsistent: frozenset[str] = frozenset()
    """Connectors of whose last set compaction has left a part: somebody must write a whole one."""
    session_key: SessionKey | None = None
    task_counts: Mapping[str, int] = field(default_factory=dict)
    """How many tasks may still write in transactions, also of connectors that are gone (KIP-618)."""

    def changed_since(self, before: "ConnectConfigs") -> set[str]:
        """The connectors of which something else is said than before, and those that came or went."""
        names = self.connectors.keys() | before.connectors.keys()
        return {name for name in names if _about(name, self) != _about(name, before)}


def _about(name: str, configs: ConnectConfigs) -> tuple[object, ...]:
    return (
        configs.connectors.get(name),
        configs.task_configs.get(name),
        configs.target_states.get(name),
        name in configs.inconsistent,
    )


# records


def connector_record(name: str, config: ConnectorConfig | None) -> LogRecord:
    """None removes the connector."""
    return _record(CONNECTOR_KEY + name, None if config is None else {"properties": config})


def target_state_record(name: str, state: TargetState | None) -> LogRecord:
    """None says nothing any more. Workers before KIP-875 know no STOPPED, and read the older field."""
    if state is None:
        return _record(TARGET_STATE_KEY + name, None)
    older = TargetState.PAUSED if state is TargetState.STOPPED else state
    return _record(TARGET_STATE_KEY + name, {"state": older.value, "state.v2": state.value})


def task_record(name: str, task: int, config: ConnectorConfig) -> LogRecord:
    return _record(f"{TASK_KEY}{name}-{task}", {"properties": config})


def commit_record(name: str, tasks: int) -> LogRecord:
    return _record(COMMIT_KEY + name, {"tasks": tasks})


def task_count_record(name: str, count: int) -> LogRecord:
    return _record(TASK_COUNT_KEY + name, {"task-count": count})


def session_key_record(key: SessionKey) -> LogRecord:
    value = {
        "key": base64.b64encode(key.key).decode(),
        "algorithm": key.algorithm,
        "creation-timestamp": key.created_ms,
    }
    return _record(SESSION_KEY, value)


def restart_record(request: RestartRequest) -> LogRecord:
    flags = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return _record(RESTART_KEY + request.connector, flags)


def logger_record(level: LoggerLevel) -> LogRecord:
    return _record(LOGGER_KEY + level.logger, {"level": level.level})


def _record(key: str, value: Mapping[str, object] | None) -> LogRecord:
    return LogRecord(key.encode(), None if value is None else write_json(value))
