"""Runs a MirrorHeartbeatConnector, which writes a record to the target's heartbeats topic every interval."""

import time
from collections.abc import Iterable
from contextlib import closing

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connectors.flow_log import flow_log
from sparkmirror.connectors.flow_settings import FlowWorker, HeartbeatConfig
from sparkmirror.connectors.heartbeat import heartbeat_record
from sparkmirror.connectors.internal_topics import NOT_TRIED, creating_again, ensure_topics, heartbeats_topic
from sparkmirror.connectors.periodic import Job, PeriodicThread
from sparkmirror.kafka.admin import Admin
from sparkmirror.kafka.topic_log import TopicWriter


class HeartbeatConnector:
    """The heartbeat connector of one flow."""

    def __init__(self, on: FlowWorker, connector: HeartbeatConfig) -> None:
        self._flow = on.flow
        self._connector = connector
        self._writer = TopicWriter(on.worker_client)
        self._created = NOT_TRIED
        self.written_topics: frozenset[str] = frozenset()
        self.emitted = 0
        self.emitted_at: float | None = None
        """The last one, in epoch seconds."""
        log = flow_log(__name__, on.flow, connector.name)
        self.thread = PeriodicThread("heartbeat connector", log, self._prepare, self._writer.close)

    def _prepare(self) -> Iterable[Job]:
        settings = self._connector.settings
        self._create_topic()
        if not settings.emit:
            return ()
        return (
            Job("emit heartbeat", settings.interval_s, self._emit, first_after_s=settings.interval_s),
            creating_again(self._create_denied),
        )

    def _create_topic(self) -> None:
        topic = heartbeats_topic(self._flow, self._connector)
        with closing(Admin(self._connector.admin)) as admin:
            writes = self._connector.admin_plugins.over(admin, topic.cluster)
            self._created = ensure_topics(admin, [topic.creation], writes, before=self._created)

    def _create_denied(self) -> None:
        if self._created.denied:
            self._create_topic()

    def _emit(self) -> None:
        record = heartbeat_record(self._flow, int(time.time() * 1000))
        log_record = LogRecord(record.key, record.value, timestamp_ms=record.timestamp_ms)
        topic = self._connector.settings.topic
        self._writer.write(topic, [log_record])
        self.written_topics = frozenset({topic})
        self.emitted += 1
        self.emitted_at = time.time()
