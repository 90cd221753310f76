"""Writes what happens to a flow, and what a connector can't do, on a thread that nothing ever waits for."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, Flow
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Cause, Lasting, Subject, Trouble, TroubleWord
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.machine import machine_name
from sparkmirror.periodic.denials import DENIED_AGAIN
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.storage.events import Event, EventKind
from sparkmirror.storage.progress import ConnectorTroubles
from sparkmirror.storage.troubles import Troubles

_WAITING_MAX: Final = 1000
_TEXT_MAX: Final = 2000
_INTERVAL_S: Final = 1.0
_TIMEOUT_S: Final = 2.0
_PAUSE: Final = Backoff(30.0, 60.0)
"""After a failure that may last: the topic may be missing for good."""

Write = Callable[[str, Iterable[Event | ConnectorTroubles]], object]


class _Output:
    """A topic of events, and the state of writing to it."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._failing: Lasting | None = None
        self.paused_until = 0.0

    def worked(self) -> None:
        self._failing = None

    def failed(self, error: SparkmirrorError, now: float) -> bool:
        """Whether the failure is to be told, at once or after a while."""
        failing = self._failing = self._failing or Lasting.since(now)
        is_told = failing.is_trouble(error, now)
        if is_told:
            failing.failures += 1
            pause = DENIED_AGAIN if isinstance(error, AuthorizationError) else _PAUSE
            self.paused_until = now + pause.delay_s(failing.failures, 0.5)
        return is_told


class EventLog:
    """`note` is safe in any thread, and never blocks. Events that can't be written wait, up to a maximum.

    `troubles` are written whenever they change, into the progress topic.
    """

    def __init__(
        self,
        flow: Flow,
        connector: ConnectorName,
        settings: ConnectionSettings,
        *,
        is_main: bool = True,
        write: Write | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`is_main`: it tells when it starts and stops, and what it can't write: both topics are its own.

        `write` replaces the writer; it raises SparkmirrorError for what can't be written.
        """
        self._log = flow_log(__name__, flow, connector)
        self._connector = connector
        self._is_main = is_main
        self._events = _Output(StateTopic.EVENTS.of(flow.source))
        self._progress = _Output(StateTopic.PROGRESS.of(flow.source))
        self._node = f"{machine_name()}:{os.getpid()}"
        self._clock = clock
        writer = TopicWriter(settings)
        self._write = write or (
            lambda topic, values: writer.write(
                topic, (each.to_record() for each in values), timeout_s=_TIMEOUT_S
            )
        )
        self._close = writer.close
        self.may_write: Callable[[], bool] = lambda: True
        """Whether the cluster of both topics is the one that is meant: until it is, everything waits."""
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        self._lock = threading.Lock()
        self.troubles = Troubles(self._log, self.note, clock)
        """The connector's present troubles."""
        self._published: Sequence[Trouble] | None = None
        self.thread = PeriodicThread("events", self._log, self._prepare, self._finish)

    def note(self, kind: EventKind, text: str, about: object = "") -> None:
        event = self._event(kind, text, str(about))
        with self._lock:
            if len(self._waiting) >= _WAITING_MAX:
                self._dropped += 1
            else:
                self._waiting.append(event)

    def _event(self, kind: EventKind, text: str, about: str) -> Event:
        return Event(self._clock(), kind, self._connector, about, text[:_TEXT_MAX], self._node)

    def _prepare(self) -> Iterable[Job]:
        if self._is_main:
            self.note(EventKind.STARTED, f"runs in process {os.getpid()} on {machine_name()}")
        return (
            Job("write events", _INTERVAL_S, self.flush, first_after_s=_INTERVAL_S),
            Job("write troubles", _INTERVAL_S, self.publish, first_after_s=_INTERVAL_S),
        )

    def _finish(self) -> None:
        if self._is_main:
            self.note(EventKind.STOPPED, "was stopped")
        self._events.paused_until = 0.0
        self.flush()
        if self._published is not None and self.may_write():
            self._put(self._progress, [ConnectorTroubles(self._connector, (), is_stopped=True)])
        self._close()

    def flush(self) -> None:
        """Write what waits. Called by `thread`."""
        if self._clock() < self._events.paused_until or not self.may_write():
            return
        with self._lock:
            events, dropped = list(self._waiting), self._dropped
        if not events:
            return
        if dropped:
            events.append(self._event(EventKind.DROPPED, f"{dropped} events could not be written", ""))
        if not self._put(self._events, events):
            return
        with self._lock:
            self._dropped -= dropped
            for _ in range(len(events) - bool(dropped)):
                self._waiting.popleft()

    def publish(self) -> None:
        """Write what the connector can't do, if that has changed. Called by `thread`."""
        now = self.troubles.now
        if now is self._published or self._clock() < self._progress.paused_until or not self.may_write():
            return
        if self._put(self._progress, [ConnectorTroubles(self._connector, now)]):
            self._published = now

    def _put(self, output: _Output, values: Iterable[Event | ConnectorTroubles]) -> bool:
        """Whether they are written. It is told once that they are not, at once or when that lasts."""
        try:
            self._write(output.topic, values)
        except SparkmirrorError as error:
            if output.failed(error, self._clock()) and self._is_main:
                cause = Cause.of(TroubleWord.NOT_WRITTEN, Subject.STATE_TOPIC, output.topic, str(error))
                self.troubles.tell(output.topic, [Trouble(cause, output.topic)])
            return False
        output.worked()
        self.troubles.tell(output.topic, ())
        return True
