"""Runs a MirrorHeartbeatConnector, which writes a record to the target's heartbeats topic every interval."""

import time
from collections.abc import Callable, Iterable

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.periodic.denials import Denials
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.settings.configured import ConfiguredHeartbeat, FlowWorker
from sparkmirror.settings.heartbeat import heartbeat_record
from sparkmirror.settings.internal_topics import heartbeats_off, heartbeats_topic
from sparkmirror.storage.own_topics import OwnTopics, watching
from sparkmirror.storage.troubles import Troubles


class HeartbeatConnector:
    """The heartbeat connector of one flow."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredHeartbeat,
        require: Callable[[], None] = lambda: None,
        troubles: Troubles | None = None,
    ) -> None:
        """`require` returns when the clusters are those that are meant."""
        self._require = require
        self._flow = on.flow
        self._connector = connector
        self._writer = TopicWriter(on.worker_client)
        log = flow_log(__name__, on.flow, connector.name)
        topic = heartbeats_topic(on.flow, connector)
        self.troubles = troubles or Troubles(log)
        self._topics = OwnTopics(
            [] if topic is None else [topic],
            connector.target_admin,
            connector.admin_plugins,
            log,
            self.troubles,
        )
        off = heartbeats_off(on.flow)
        tell = self.troubles.of_denials("denied", lambda error: _not_written(connector, error, off))
        self._denials = Denials(log, "emit heartbeat", f"; {off}", tell=tell)
        self.written_topics: frozenset[str] = frozenset()
        self.emitted = 0
        self.emitted_at: float | None = None
        """The last one, in epoch seconds."""
        self.thread = PeriodicThread("heartbeat connector", log, self._prepare, self._writer.close)

    def _prepare(self) -> Iterable[Job]:
        settings = self._connector.settings
        if not settings.emit:
            return ()
        self._require()
        self._topics.ensure()
        return (
            Job("emit heartbeat", settings.interval_s, self._emit, first_after_s=settings.interval_s),
            watching(self._watch_topic),
        )

    def _watch_topic(self) -> None:
        self._topics.watch(time.monotonic())

    def _emit(self) -> None:
        self._require()
        if not self._topics.result.refused:
            self._denials.attempt(self._write)

    def _write(self) -> None:
        record = heartbeat_record(self._flow, int(time.time() * 1000))
        log_record = LogRecord(record.key, record.value, timestamp_ms=record.timestamp_ms)
        topic = self._connector.settings.topic
        self._writer.write(topic, [log_record])
        self.written_topics = frozenset({topic})
        self.emitted += 1
        self.emitted_at = time.time()


def _not_written(connector: ConfiguredHeartbeat, error: AuthorizationError, off: str) -> Trouble:
    name = connector.settings.topic
    return Trouble(Cause.of_error(TroubleWord.NOT_WRITTEN, Subject.STATE_TOPIC, name, error, off), name)
