"""A flow's rate limits as of now, and the word to its running tasks when they change."""

import threading
from collections.abc import Iterable

from sparkmirror.connectors.flow_log import flow_log
from sparkmirror.connectors.flow_settings import FlowWorker, SourceConnector
from sparkmirror.connectors.periodic import PeriodicThread
from sparkmirror.connectors.schedule import Job
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.storage.progress import FlowLimits, progress_topic

_LOOK_INTERVAL_S = 0.5
_WRITE_TIMEOUT_S = 2.0
"""A stop must not wait for more; what fails is written again at the next look."""


class CurrentLimits:
    """Those of one flow. `thread` writes them to the progress topic at the start and after each change.

    A copy job's plans take `limits` after the copy job was announced: a change is then either in the
    plans already, or its record comes behind the announcement, where tasks see it.
    """

    def __init__(self, settings: FlowWorker, connector: SourceConnector) -> None:
        self._client = settings.worker_client
        self._topic = progress_topic(settings.flow.source)
        self._connector = connector.name
        self._log = flow_log(__name__, settings.flow, connector.name)
        self._lock = threading.Lock()
        self._limits = connector.settings.rate_limits
        self._written: RateLimits | None = None
        """None at the start: also a flow without limits must take back those of its former life."""
        self._failure_told = False
        self.thread = PeriodicThread("rate limits", self._log, self._jobs, lambda: None)

    @property
    def limits(self) -> RateLimits:
        """Safe in any thread."""
        with self._lock:
            return self._limits

    def change(self, limits: RateLimits) -> None:
        """Safe in any thread; `thread` tells the tasks."""
        with self._lock:
            self._limits = limits

    def _jobs(self) -> Iterable[Job]:
        return (Job("tell rate limits", _LOOK_INTERVAL_S, self._tell),)

    def _tell(self) -> None:
        limits = self.limits
        if limits == self._written:
            return
        try:
            self._write(limits)
        except SparkmirrorError as error:
            self._tell_failure(limits, error)
            return
        is_change = self._written is not None
        self._written, self._failure_told = limits, False
        if is_change:
            self._log.info("now copies %s", limits)
        elif limits:
            self._log.info("copies %s", limits)

    def _write(self, limits: RateLimits) -> None:
        writer = TopicWriter(self._client)  # for once: hours may pass until the next change
        try:
            record = FlowLimits(self._connector, limits).to_record()
            writer.write(self._topic, [record], timeout_s=_WRITE_TIMEOUT_S)
        finally:
            writer.close()

    def _tell_failure(self, limits: RateLimits, error: SparkmirrorError) -> None:
        # At the start the plans say it too, and the topic may not be there yet.
        if self._written is not None and not self._failure_told:
            self._log.warning("the tasks can't be told to copy %s: %s; trying again", limits, error)
            self._failure_told = True
