"""Reads and writes Connect's status topic: the states of connectors and tasks, and the topics they use."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.status_records import (
    StatusFold,
    connector_status_record,
    is_safe,
    removed_topic_record,
    task_status_record,
    topic_record,
)
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import Status
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.kafka.data.topic_log import TopicTail, TopicWriter

_log = logging.getLogger(__name__)


class UnreadWrites:
    """The offset of each key's newest record that was written and taken here, and not read back yet."""

    def __init__(self) -> None:
        self._offsets: dict[bytes | None, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, key: bytes | None, offset: int) -> None:
        """A record was written."""
        self._offsets[key] = offset

    def is_news(self, record: LogRecord) -> bool:
        """Whether a record that was read is newer than what was written here."""
        written = self._offsets.get(record.key, -1)
        if record.offset >= written:
            self._offsets.pop(record.key, None)
        return record.offset > written


class StatusTopic:
    """Thread-safe. A written status is visible here when the call returns; writing raises KafkaError.

    `put_…_safely` write nothing over the status of a newer generation of the group, as far as known here.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        topic: str,
        *,
        tail: TopicTail | None = None,
        writer: TopicWriter | None = None,
    ) -> None:
        """`tail` and `writer` replace those of the topic."""
        self._topic = topic
        self._tail = tail or TopicTail(settings, topic, whole=True)
        self._writer = writer or TopicWriter(settings)
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._fold = StatusFold()
        self._unread = UnreadWrites()

    def read_to_end(self, timeout_s: float) -> None:
        """Read up to the present end. Raises KafkaError."""
        with self._reading:
            for record in self._tail.read_to_end(timeout_s):
                self._take_read([record])

    def poll(self, timeout_s: float) -> None:
        """Take new records, waiting up to the timeout for some. Raises KafkaError."""
        with self._reading:
            self._take_read(self._tail.poll(timeout_s))

    def connectors(self) -> Mapping[str, Status]:
        with self._lock:
            return dict(self._fold.connectors)

    def connector(self, name: str) -> Status | None:
        with self._lock:
            return self._fold.connectors.get(name)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        with self._lock:
            return dict(sorted(self._fold.tasks.get(connector, {}).items()))

    def topics(self, connector: str) -> Sequence[str]:
        with self._lock:
            return sorted(self._fold.topics.get(connector, ()))

    def put_connector(self, name: str, status: Status) -> None:
        self._put([connector_status_record(name, status)])

    def put_connector_safely(self, name: str, status: Status) -> None:
        if is_safe(self.connector(name), status):
            self.put_connector(name, status)

    def put_task(self, name: str, task: int, status: Status) -> None:
        self._put([task_status_record(name, task, status)])

    def put_task_safely(self, name: str, task: int, status: Status) -> None:
        if is_safe(self.tasks(name).get(task), status):
            self.put_task(name, task, status)

    def remove_connector(self, name: str) -> None:
        """Remove the connector with its tasks and topics."""
        tasks = [task_status_record(name, task, None) for task in self.tasks(name)]
        topics = [removed_topic_record(name, topic) for topic in self.topics(name)]
        self._put([*tasks, connector_status_record(name, None), *topics])

    def remove_task(self, name: str, task: int) -> None:
        self._put([task_status_record(name, task, None)])

    def put_topic(self, name: str, topic: str, task: int, discovered_ms: int) -> None:
        self._put([topic_record(name, topic, task, discovered_ms)])

    def remove_topics(self, name: str) -> None:
        self._put([removed_topic_record(name, topic) for topic in self.topics(name)])

    def close(self) -> None:
        """Call it after other threads have ended."""
        self._tail.close()
        self._writer.close()

    def _put(self, records: Sequence[LogRecord]) -> None:
        with self._writing:
            offsets = self._writer.write(self._topic, records)
            with self._lock:
                for record, offset in zip(records, offsets, strict=True):
                    self._unread.note(record.key, offset)
                    self._take(record._replace(offset=offset))

    def _take_read(self, records: Iterable[LogRecord]) -> None:
        """Wait for a write in progress: others may have written after its record already."""
        with self._writing, self._lock:
            for record in records:
                if self._unread.is_news(record):
                    self._take(record)

    def _take(self, record: LogRecord) -> None:
        try:
            self._fold.take(record)
        except MalformedRecordError as error:
            _log.warning("%s: offset %d is ignored: %s", self._topic, record.offset, error)
