"""Writes the records of Kafka Connect's status topic in Connect's bytes, and folds them.

They hold the state of each connector and task, and the topics that each connector has used (KIP-558).

Pure.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.connect import State, Status
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.storage.connect_json import read_json, write_json

_CONNECTOR: Final = "status-connector-"
_TASK: Final = "status-task-"
_TOPIC: Final = "status-topic-"
_TOPIC_OF: Final = ":connector-"


def connector_status_record(name: str, status: Status | None) -> LogRecord:
    """Write a connector's status; None removes the connector, which Java calls DESTROYED."""
    return _record(_CONNECTOR + name, _status_fields(status))


def task_status_record(name: str, task: int, status: Status | None) -> LogRecord:
    return _record(f"{_TASK}{name}-{task}", _status_fields(status))


def topic_record(name: str, topic: str, task: int, discovered_ms: int) -> LogRecord:
    fields = {"name": topic, "connector": name, "task": task, "discoverTimestamp": discovered_ms}
    return _record(f"{_TOPIC}{topic}{_TOPIC_OF}{name}", {"topic": fields})


def removed_topic_record(name: str, topic: str) -> LogRecord:
    return _record(f"{_TOPIC}{topic}{_TOPIC_OF}{name}", None)


def is_safe(known: Status | None, status: Status) -> bool:
    """Whether the status does not overwrite one of a newer generation of the group."""
    return known is None or known.worker_id == status.worker_id or known.generation <= status.generation


class StatusFold:
    """Applies the records of a status topic, in order within each key, as Java's KafkaStatusBackingStore."""

    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, set[str]] = {}
        self._takers: Mapping[str, Callable[[str, object], None]] = {
            _CONNECTOR: self._take_connector,
            _TASK: self._take_task,
            _TOPIC: self._take_topic,
        }

    def take(self, record: LogRecord) -> None:
        """Raises MalformedRecordError, and changes nothing."""
        key = (record.key or b"").decode(errors="replace")
        try:
            for prefix, taker in self._takers.items():
                if key.startswith(prefix):
                    return taker(key.removeprefix(prefix), read_json(record.value))
        except MalformedRecordError as error:
            raise MalformedRecordError(f"{key}: {error}") from error
        raise MalformedRecordError(f"{key or 'no key'}: it is none of a status topic's keys")

    def _take_connector(self, name: str, value: object) -> None:
        if value is None:
            self.connectors.pop(name, None)
            self.tasks.pop(name, None)
        else:
            self.connectors[_required(name)] = _status(value)

    def _take_task(self, rest: str, value: object) -> None:
        name, _, task = rest.rpartition("-")
        if not (task.isascii() and task.isdigit()):
            raise MalformedRecordError("the key has no task's number at its end")
        if value is None:
            self._remove_task(name, int(task))
            return
        status = _status(value)
        tasks = self.tasks.setdefault(_required(name), {})
        if not _is_stale(tasks.get(int(task)), status):
            tasks[int(task)] = status

    def _remove_task(self, name: str, task: int) -> None:
        tasks = self.tasks.get(name, {})
        tasks.pop(task, None)
        if not tasks:
            self.tasks.pop(name, None)

    def _take_topic(self, rest: str, value: object) -> None:
        topic, _, name = map(_required, rest.partition(_TOPIC_OF))
        topics = self.topics.setdefault(name, set())
        if value is None:
            topics.discard(topic)
        else:
            topics.add(topic)
        if not topics:
            del self.topics[name]


def _is_stale(known: Status | None, status: Status) -> bool:
    """A worker that gave up a task may write UNASSIGNED after another has started it (KAFKA-12525)."""
    return (
        status.state is State.UNASSIGNED
        and known is not None
        and known.state is State.RUNNING
        and known.generation >= status.generation
    )


def _status(value: object) -> Status:
    match value:
        case {"state": str(state), "worker_id": str(worker), "generation": int(generation), **rest} if (
            state in State.__members__
        ):
            trace, version = _text(rest.get("trace")), _text(rest.get("version"))
            return Status(State(state), worker, generation, trace, version)
        case _:
            raise MalformedRecordError("it is no status")


def _status_fields(status: Status | None) -> Mapping[str, object] | None:
    if status is None:
        return None
    return {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }


def _record(key: str, value: Mapping[str, object] | None) -> LogRecord:
    """The key determines the partition."""
    return LogRecord(key.encode(), None if value is None else write_json(value), partition=None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _required(part: str) -> str:
    if not part:
        raise MalformedRecordError("a part of the key is missing")
    return part
