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
    ConfigFold,
    ConnectConfigs,
    SessionKey,
    StoredLevel,
    commit_record,
    connector_record,
    logger_record,
    session_key_record,
    target_state_record,
    task_record,
)
from sparkmirror.connect.topics.read_back_log import OpenReadBackLog, ReadBackLog
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import ConnectorConfig, TargetState
from sparkmirror.domain.errors import KafkaError, MalformedRecordError

_log = logging.getLogger(__name__)

_WRITE_TIMEOUT_S: Final = 30.0
"""The longest time until a record is read back, as in Java."""
_LEVELS_MAX: Final = 1000
"""The most levels that are kept; beyond, the oldest are dropped. `poll` is called far more often."""


class ConfigTopic:
    """Thread-safe; one thread polls. A written record has been read back when the call returns.

    Writing raises KafkaError with Java's message, after 30 s at the latest; the record may have been written.
    """

    def __init__(
        self, settings: ConnectionSettings, topic: str, open_log: OpenReadBackLog = ReadBackLog
    ) -> None:
        self._topic = topic
        self._log = open_log(settings, topic, self._take)
        self._lock = threading.Lock()
        self._fold = ConfigFold()
        self._configs: ConnectConfigs | None = None
        self._levels: deque[StoredLevel] = deque(maxlen=_LEVELS_MAX)
        self._is_caught_up = False

    def read_to_end(self, timeout_s: float) -> None:
        """Read up to the present end. Raises KafkaError."""
        self._log.read_to_end(timeout_s)
        self._is_caught_up = True

    def poll(self, timeout_s: float) -> Sequence[StoredLevel]:
        """Return the log levels set since the last call, and none from before the first `read_to_end`.

        Returns at once when the topic has had new records of any kind since the last call.
        Raises KafkaError.
        """
        self._log.poll(timeout_s)
        with self._lock:
            levels = list(self._levels)
            self._levels.clear()
        return levels

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
        """Write a config. `target_state` None keeps the present state, and is RUNNING for a new connector."""
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

    def put_log_level(self, logger: str, level: str) -> None:
        self._put("writing logger level to Kafka", [logger_record(StoredLevel(logger, level))])

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
                    level = self._fold.take(record)
                except MalformedRecordError as error:
                    _log.error("%s: offset %d is ignored: %s", self._topic, record.offset, error)
                    continue
                if level is not None and self._is_caught_up:
                    self._levels.append(level)
