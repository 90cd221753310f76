"""Reads and writes Connect's config topic: connectors, tasks, target states, session keys and log levels.

One group has it, and only its leader writes connectors' records.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.config_records import (
    ConfigEvent,
    ConfigFold,
    ConnectConfigs,
    LoggerLevel,
    RestartRequest,
    SessionKey,
    commit_record,
    connector_record,
    logger_record,
    restart_record,
    session_key_record,
    target_state_record,
    task_count_record,
    task_record,
)
from sparkmirror.connect.topics.read_back_log import ReadBackLog
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import ConnectorConfig, TargetState
from sparkmirror.domain.errors import KafkaError, MalformedRecordError

_log = logging.getLogger(__name__)

_WRITE_TIMEOUT_S: Final = 30.0
"""Until the record is read back, as in Java."""
_EVENTS_MAX: Final = 1000
"""Beyond it the oldest are dropped; `poll` is called far more often."""


class ConfigTopic:
    """Thread-safe; one thread polls. A written record has been read back when the call returns.

    Writing raises KafkaError with Java's message, after 30 s at the latest; the record may have been written.
    """

    def __init__(self, settings: ConnectionSettings, topic: str) -> None:
        self._topic = topic
        self._log = ReadBackLog(settings, topic, self._take)
        self._lock = threading.Lock()
        self._fold = ConfigFold()
        self._configs: ConnectConfigs | None = None
        self._events: deque[ConfigEvent] = deque(maxlen=_EVENTS_MAX)
        self._is_caught_up = False

    def read_to_end(self, timeout_s: float) -> None:
        """Read up to the present end. Raises KafkaError."""
        self._log.read_to_end(timeout_s)
        self._is_caught_up = True

    def poll(self, timeout_s: float) -> Sequence[ConfigEvent]:
        """Return the events since the last call, and none from before the first `read_to_end`.

        Returns at once when the topic has had new records since the last call, events or others.
        Raises KafkaError.
        """
        self._log.poll(timeout_s)
        with self._lock:
            events = list(self._events)
            self._events.clear()
        return events

    @property
    def configs(self) -> ConnectConfigs:
        """The configs as read so far; the object does not change afterwards."""
        with self._lock:
            if self._configs is None:
                self._configs = self._fold.snapshot()
            return self._configs

    def put_connector(
        self, name: str, config: ConnectorConfig, target_state: TargetState | None = None
    ) -> None:
        """None as `target_state` keeps the present one; a new connector is RUNNING then."""
        states = [] if target_state is None else [target_state_record(name, target_state)]
        self._put("writing connector configuration to Kafka", [*states, connector_record(name, config)])

    def remove_connector(self, name: str) -> None:
        records = [connector_record(name, None), target_state_record(name, None)]
        self._put("removing connector configuration from Kafka", records)

    def put_task_configs(self, name: str, tasks: Sequence[ConnectorConfig]) -> None:
        """Replace the whole set."""
        deadline = time.monotonic() + _WRITE_TIMEOUT_S
        if tasks:
            records = [task_record(name, task, config) for task, config in enumerate(tasks)]
            self._put("writing task configurations to Kafka", records)
        left_s = deadline - time.monotonic()
        self._put("writing root configuration to Kafka", [commit_record(name, len(tasks))], left_s)

    def put_target_state(self, name: str, state: TargetState) -> None:
        self._put("writing target state to Kafka", [target_state_record(name, state)])

    def put_session_key(self, key: SessionKey) -> None:
        self._put("writing session key to Kafka", [session_key_record(key)])

    def request_restart(self, request: RestartRequest) -> None:
        self._put(f"writing {request} to Kafka", [restart_record(request)])

    def put_log_level(self, logger: str, level: str) -> None:
        self._put("writing logger level to Kafka", [logger_record(LoggerLevel(logger, level))])

    def put_task_count(self, name: str, count: int) -> None:
        self._put("writing task count record to Kafka", [task_count_record(name, count)])

    def close(self) -> None:
        self._log.close()

    def _put(self, what: str, records: Sequence[LogRecord], timeout_s: float = _WRITE_TIMEOUT_S) -> None:
        try:
            self._log.write(records, timeout_s)
        except KafkaError as error:
            raise type(error)(f"Error {what}: {error}", error.code) from error

    def _take(self, records: Sequence[LogRecord]) -> None:
        with self._lock:
            self._configs = None
            for record in records:
                try:
                    event = self._fold.take(record)
                except MalformedRecordError as error:
                    _log.error("%s: offset %d is ignored: %s", self._topic, record.offset, error)
                    continue
                if event is not None and self._is_caught_up:
                    self._events.append(event)
