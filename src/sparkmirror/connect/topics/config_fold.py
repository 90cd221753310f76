"""What follows from the records of Connect's config topic, read in their order."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.config_records import (
    COMMIT_KEY,
    CONNECTOR_KEY,
    LOGGER_KEY,
    RESTART_KEY,
    SESSION_KEY,
    TARGET_STATE_KEY,
    TASK_COUNT_KEY,
    TASK_KEY,
    ConfigEvent,
    ConnectConfigs,
    LoggerLevel,
    RestartRequest,
    SessionKey,
)
from sparkmirror.domain.connect import ConnectorConfig, TargetState
from sparkmirror.domain.connect_json import java_text, read_json
from sparkmirror.domain.errors import MalformedRecordError


class ConfigFold:
    """Takes the records of a config topic in their order, as Java's KafkaConfigBackingStore does."""

    def __init__(self) -> None:
        self._connectors: dict[str, ConnectorConfig] = {}
        self._states: dict[str, TargetState] = {}
        self._tasks: dict[str, Sequence[ConnectorConfig]] = {}
        self._deferred: dict[str, dict[int, ConnectorConfig]] = {}
        self._inconsistent: set[str] = set()
        self._session_key: SessionKey | None = None
        self._task_counts: dict[str, int] = {}
        self._takers: Mapping[str, Callable[[str, object], ConfigEvent | None]] = {
            TARGET_STATE_KEY: self._take_target_state,
            CONNECTOR_KEY: self._take_connector,
            TASK_KEY: self._take_task,
            COMMIT_KEY: self._take_commit,
            RESTART_KEY: _restart_request,
            TASK_COUNT_KEY: self._take_task_count,
            SESSION_KEY: self._take_session_key,
            LOGGER_KEY: _logger_level,
        }

    def take(self, record: LogRecord) -> ConfigEvent | None:
        """What the record asks for, if that is for once. Raises MalformedRecordError, and changes nothing."""
        key = (record.key or b"").decode(errors="replace")
        try:
            for prefix, taker in self._takers.items():
                if key.startswith(prefix) and (prefix != SESSION_KEY or key == prefix):
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
            task_counts=dict(self._task_counts),
        )

    def _take_connector(self, name: str, value: object) -> None:
        if value is None:
            self._forget(name)
            return
        self._connectors[name] = _properties(value)
        self._states.setdefault(name, TargetState.RUNNING)

    def _take_target_state(self, name: str, value: object) -> None:
        """It may come before its connector."""
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
        # There may be more: what compaction has left of a larger set before.
        if all(task in deferred for task in range(count)):
            self._tasks[name] = tuple(deferred[task] for task in range(count))
            self._inconsistent.discard(name)
        else:
            self._inconsistent.add(name)

    def _take_task_count(self, name: str, value: object) -> None:
        self._task_counts[name] = _integer(value, "task-count")

    def _take_session_key(self, _rest: str, value: object) -> None:
        fields = _fields(value)
        match fields.get("key"), fields.get("algorithm"), fields.get("creation-timestamp"):
            case str(key), str(algorithm), int(created_ms) if not isinstance(created_ms, bool):
                self._session_key = SessionKey(_decoded(key), algorithm, created_ms)
            case _:
                raise MalformedRecordError("it is no session key")

    def _forget(self, name: str) -> None:
        """The target state has a record of its own."""
        self._connectors.pop(name, None)
        self._tasks.pop(name, None)
        self._deferred.pop(name, None)
        self._inconsistent.discard(name)


def _restart_request(name: str, value: object) -> RestartRequest:
    fields = _fields(value)
    return RestartRequest(
        name,
        include_tasks=fields.get("include-tasks") is True,
        only_failed=fields.get("only-failed") is True,
    )


def _logger_level(logger: str, value: object) -> LoggerLevel:
    level = _fields(value).get("level")
    if not isinstance(level, str):
        raise MalformedRecordError("it has no level")
    return LoggerLevel(logger, level)


def _target_state(value: object) -> TargetState:
    """By the newer field, which older workers do not write."""
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
