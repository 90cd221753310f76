"""Passes changes of a flow's rate limits on to its running tasks, which enforce them (`copy/throttle.py`)."""

import threading
from collections.abc import Callable, Iterable

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.storage.events import EventKind, Note, no_note
from sparkmirror.storage.progress import FlowLimits

_CHECK_INTERVAL_S = 0.5
_WRITE_TIMEOUT_S = 2.0
"""A stop waits for at most this; a failed write is retried at the next check."""


class RateLimitUpdates:
    """The limits of one flow. `thread` writes them to the progress topic at the start and after each change.

    A copy job's plans take `limits` after the copy job was announced: a change is then either in the
    plans already, or its record comes behind the announcement, where tasks see it.
    """

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        note: Note = no_note,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """`note` gets the events; `may_write`: whether the target is the cluster that is meant."""
        self._note = note
        self._may_write = may_write
        self._client = on.worker_client
        self._topic = StateTopic.PROGRESS.of(on.flow.source)
        self._connector = connector.name
        self._log = flow_log(__name__, on.flow, connector.name)
        self._lock = threading.Lock()
        self._limits = connector.settings.rate_limits
        self._written: RateLimits | None = None
        """None at the start: also a flow without limits must replace those of its last run."""
        self._failure_logged = False
        self.thread = PeriodicThread("rate limits", self._log, self._jobs, lambda: None)

    @property
    def limits(self) -> RateLimits:
        """Safe in any thread."""
        with self._lock:
            return self._limits

    def change(self, limits: RateLimits) -> None:
        """Safe in any thread; `thread` writes the record that tasks read."""
        with self._lock:
            self._limits = limits

    def _jobs(self) -> Iterable[Job]:
        return (Job("publish rate limits", _CHECK_INTERVAL_S, self._publish),)

    def _publish(self) -> None:
        limits = self.limits
        if limits == self._written or not self._may_write():
            return
        try:
            self._write(limits)
        except SparkmirrorError as error:
            self._log_failure(limits, error)
            return
        is_change = self._written is not None
        self._written, self._failure_logged = limits, False
        if is_change:
            self._log.info("now copies %s", limits)
            self._note(EventKind.CONFIGURED, f"now copies {limits}")
        elif limits:
            self._log.info("copies %s", limits)

    def _write(self, limits: RateLimits) -> None:
        writer = TopicWriter(self._client)  # for one record: hours may pass until the next change
        try:
            record = FlowLimits(self._connector, limits).to_record()
            writer.write(self._topic, [record], timeout_s=_WRITE_TIMEOUT_S)
        finally:
            writer.close()

    def _log_failure(self, limits: RateLimits, error: SparkmirrorError) -> None:
        # At the start the task plans hold the limits too, and the topic may not exist yet.
        if self._written is not None and not self._failure_logged:
            self._log.warning("the tasks can't be notified to copy %s: %s; retrying", limits, error)
            self._failure_logged = True
