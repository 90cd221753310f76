"""Writes the records of Connect's config topic in Connect's bytes, and folds them into `ConnectConfigs`.

A connector's task configs are written one by one and take effect with the commit record, so that no worker
runs half of an old set beside half of a new one.

Pure.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.connect import ConnectorConfig, TargetState
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.storage.connect_json import java_text, read_json, write_json

_TARGET_STATE_KEY: Final = "target-state-"
_CONNECTOR_KEY: Final = "connector-"
_TASK_KEY: Final = "task-"
_COMMIT_KEY: Final = "commit-"
_RESTART_KEY: Final = "restart-connector-"
_TASK_COUNT_KEY: Final = "tasks-fencing-"
_SESSION_KEY: Final = "session-key"
_LOGGER_KEY: Final = "logger-cluster-"
"""Prefixes of keys, before a name; the session key's is the whole key."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The key that signs requests between nodes (KIP-507). `algorithm` has Java's name."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """The level of a logger on all nodes (KIP-976)."""

    logger: str
    level: str


@dataclass(frozen=True, slots=True)
class ConnectConfigs:
    """The configs as of one offset. `task_configs` and `target_states` have every connector, and no other."""

    connectors: Mapping[str, ConnectorConfig] = field(default_factory=dict)
    task_configs: Mapping[str, Sequence[ConnectorConfig]] = field(default_factory=dict)
    """The last complete set; empty if there is none, or an inconsistent set followed."""
    target_states: Mapping[str, TargetState] = field(default_factory=dict)
    inconsistent: frozenset[str] = frozenset()
    """Connectors of whose last set compaction has left a part: the leader must write a complete one."""
    session_key: SessionKey | None = None

    def changed_since(self, before: "ConnectConfigs") -> set[str]:
        """The connectors that were added, removed or changed since."""
        names = self.connectors.keys() | before.connectors.keys()
        return {name for name in names if _state_of(name, self) != _state_of(name, before)}


def _state_of(name: str, configs: ConnectConfigs) -> tuple[object, ...]:
    return (
        configs.connectors.get(name),
        configs.task_configs.get(name),
        configs.target_states.get(name),
        name in configs.inconsistent,
    )


# records


def connector_record(name: str, config: ConnectorConfig | None) -> LogRecord:
    """Write a connector's config; None removes the connector."""
    return _record(_CONNECTOR_KEY + name, None if config is None else {"properties": config})


def target_state_record(name: str, state: TargetState | None) -> LogRecord:
    """Write a target state; None removes it. Workers before KIP-875 read the older field."""
    if state is None:
        return _record(_TARGET_STATE_KEY + name, None)
    older = TargetState.PAUSED if state is TargetState.STOPPED else state
    return _record(_TARGET_STATE_KEY + name, {"state": older.value, "state.v2": state.value})


def task_record(name: str, task: int, config: ConnectorConfig) -> LogRecord:
    return _record(f"{_TASK_KEY}{name}-{task}", {"properties": config})


def commit_record(name: str, tasks: int) -> LogRecord:
    return _record(_COMMIT_KEY + name, {"tasks": tasks})


def session_key_record(key: SessionKey) -> LogRecord:
    value = {
        "key": base64.b64encode(key.key).decode(),
        "algorithm": key.algorithm,
        "creation-timestamp": key.created_ms,
    }
    return _record(_SESSION_KEY, value)


def logger_record(level: StoredLevel) -> LogRecord:
    return _record(_LOGGER_KEY + level.logger, {"level": level.level})


def _record(key: str, value: Mapping[str, object] | None) -> LogRecord:
    return LogRecord(key.encode(), None if value is None else write_json(value))


# fold


class ConfigFold:
    """Applies the records of a config topic in their order, as Java's KafkaConfigBackingStore does."""

    def __init__(self) -> None:
        self._connectors: dict[str, ConnectorConfig] = {}
        self._states: dict[str, TargetState] = {}
        self._tasks: dict[str, Sequence[ConnectorConfig]] = {}
        self._deferred: dict[str, dict[int, ConnectorConfig]] = {}
        self._inconsistent: set[str] = set()
        self._session_key: SessionKey | None = None
        self._takers: Mapping[str, Callable[[str, object], StoredLevel | None]] = {
            _TARGET_STATE_KEY: self._take_target_state,
            _CONNECTOR_KEY: self._take_connector,
            _TASK_KEY: self._take_task,
            _COMMIT_KEY: self._take_commit,
            _RESTART_KEY: _ignore,
            _TASK_COUNT_KEY: _ignore,
            _SESSION_KEY: self._take_session_key,
            _LOGGER_KEY: _logger_level,
        }

    def take(self, record: LogRecord) -> StoredLevel | None:
        """Return the log level that the record sets, if any. Raises MalformedRecordError."""
        key = (record.key or b"").decode(errors="replace")
        try:
            for prefix, taker in self._takers.items():
                if key.startswith(prefix) and (prefix != _SESSION_KEY or key == prefix):
                    return taker(key.removeprefix(prefix), read_json(record.value))
        except MalformedRecordError as error:
            raise MalformedRecordError(f"{key}: {error}") from error
        raise MalformedRecordError(f"{key or 'no key'}: it is none of a config topic's keys")

    def snapshot(self) -> ConnectConfigs:
        names = self._connectors
        return ConnectConfigs(
            connectors=dict(names),
            task_configs={
                name: () if name in self._inconsistent else self._tasks.get(name, ()) for name in names
            },
            target_states={name: self._states[name] for name in names},
            inconsistent=frozenset(self._inconsistent),
            session_key=self._session_key,
        )

    def _take_connector(self, name: str, value: object) -> None:
        if value is None:
            self._forget(name)
            return
        self._connectors[name] = _properties(value)
        self._states.setdefault(name, TargetState.RUNNING)

    def _take_target_state(self, name: str, value: object) -> None:
        """The record may precede its connector's."""
        if value is not None:
            self._states[name] = _target_state(value)
        elif name in self._connectors:
            self._states[name] = TargetState.RUNNING
        else:
            self._states.pop(name, None)

    def _take_task(self, rest: str, value: object) -> None:
        name, dash, task = rest.rpartition("-")
        if not dash or not (task.isascii() and task.isdigit()):
            raise MalformedRecordError("the key has no task's number at its end")
        self._deferred.setdefault(name, {})[int(task)] = _properties(value)

    def _take_commit(self, name: str, value: object) -> None:
        if name not in self._connectors:
            # Written after the connector was removed, or compaction has left no trace of that connector.
            self._forget(name)
            return
        count = _integer(value, "tasks")
        deferred = self._deferred.pop(name, {})
        # There may be more, left by compaction of a larger set before.
        if all(task in deferred for task in range(count)):
            self._tasks[name] = tuple(deferred[task] for task in range(count))
            self._inconsistent.discard(name)
        else:
            self._inconsistent.add(name)

    def _take_session_key(self, _rest: str, value: object) -> None:
        fields = _fields(value)
        match fields.get("key"), fields.get("algorithm"), fields.get("creation-timestamp"):
            case str(key), str(algorithm), int(created_ms) if not isinstance(created_ms, bool):
                self._session_key = SessionKey(_decoded(key), algorithm, created_ms)
            case _:
                raise MalformedRecordError("it is no session key")

    def _forget(self, name: str) -> None:
        """Keep the target state, which has its own record."""
        self._connectors.pop(name, None)
        self._tasks.pop(name, None)
        self._deferred.pop(name, None)
        self._inconsistent.discard(name)


def _ignore(_name: str, _value: object) -> None:
    """Skip Java's restart requests (KIP-745) and task counts (KIP-618): the leader here needs neither."""


def _logger_level(logger: str, value: object) -> StoredLevel:
    level = _fields(value).get("level")
    if not isinstance(level, str):
        raise MalformedRecordError("it has no level")
    return StoredLevel(logger, level)


def _target_state(value: object) -> TargetState:
    """Read the newer field, or the older one of workers that do not write it."""
    fields = _fields(value)
    newer = fields.get("state.v2")
    name = newer if isinstance(newer, str) else fields.get("state")
    try:
        return TargetState(name)
    except ValueError as error:
        raise MalformedRecordError(f"{name} is no target state") from error


def _properties(value: object) -> ConnectorConfig:
    properties = _fields(value).get("properties")
    if not isinstance(properties, Mapping):
        raise MalformedRecordError("it has no properties")
    return {key: java_text(one) for key, one in properties.items() if one is not None}


def _integer(value: object, name: str) -> int:
    number = _fields(value).get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise MalformedRecordError(f"it has no number of {name}")
    return number


def _fields(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise MalformedRecordError("it is no object")
    return value


def _decoded(key: str) -> bytes:
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error as error:
        raise MalformedRecordError("the key is not in base64") from error
