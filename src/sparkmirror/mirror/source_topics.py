"""Keeps the internal topics of a source connector there: created at its start, and again when they vanish."""

import time
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.incidents import unfenced
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.internal_topics import offset_syncs_topic, own_topics_on_target
from sparkmirror.storage.attempts import missing_topic
from sparkmirror.storage.own_topics import Ensured, OwnTopics
from sparkmirror.storage.topic_creation import require_compacted
from sparkmirror.storage.troubles import Troubles

_ATTEMPTS_TIMEOUT_S: Final = 20.0
"""An overloaded broker takes long to learn of a new topic; without this one nothing is fenced."""


class SourceTopics:
    """Lists the topics of a flow's source. Methods block."""

    def __init__(self, on: FlowWorker, connector: ConfiguredSource, log: FlowLog, troubles: Troubles) -> None:
        syncs, plugins = offset_syncs_topic(on, connector), connector.admin_plugins
        self._on = on
        self._log = log
        self._attempts = StateTopic.ATTEMPTS.of(on.flow.source)
        on_target = own_topics_on_target(on, connector)
        self._on_target = OwnTopics(on_target, connector.target_admin, plugins, log, troubles)
        self._syncs = OwnTopics(
            [] if syncs is None else [syncs], connector.offset_syncs_admin, plugins, log, troubles
        )
        own = {topic.name for topic in on_target} | ({syncs.name} if syncs else set())
        self.of_tasks = frozenset(own - {StateTopic.EVENTS.of(on.flow.source)})
        """The topics of the tasks' state."""
        self.has_attempts = True
        """Whether attempts can be recorded."""

    def create(self, target: Admin) -> None:
        """Raises KafkaError where the flow can't begin, UnfitTopicError where it would lose its state."""
        ensured = self._on_target.ensure()
        require_compacted(
            target, "offset.storage.topic", self._on.worker.offset_topic.name, "source connector offsets"
        )
        self._note_attempts(target, ensured)
        try:
            self._syncs.ensure()
        except KafkaError as error:
            if error.retriable:
                raise
            self._log.warning("no offset syncs are written: %s", error)

    def watch(self, target: Admin) -> frozenset[str]:
        """Create what vanished, and what was refused if it is time; the names of those that had vanished.

        Raises KafkaError.
        """
        now = time.monotonic()
        had_attempts = not self._on_target.lacks(self._attempts)
        ensured = self._on_target.watch(now)
        if not had_attempts or self._attempts in ensured.missing:
            self._note_attempts(target, ensured)
        return ensured.remade | self._syncs.watch(now).remade

    def _note_attempts(self, target: Admin, ensured: Ensured) -> None:
        """A topic just created is not known to every broker yet."""
        topic = self._attempts
        is_refused, was_there = topic in ensured.refused, self.has_attempts
        is_new = topic in ensured.missing and not is_refused
        if is_refused or (is_new and topic not in target.await_partitions({topic: 1}, _ATTEMPTS_TIMEOUT_S)):
            self.has_attempts = False
            if was_there:
                missing = missing_topic(self._on.flow.source, self._on.worker_client)
                self._log.warning("%s", unfenced(missing).text)
            return
        self.has_attempts = True
        require_compacted(target, "topic of attempts", topic, "records of who writes a partition")
