"""Writes what happens to a flow into its events topic, on a thread of its own: nothing ever waits for it."""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, Flow
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.storage.events import Event, EventKind

_WAITING_MAX: Final = 1000
_TEXT_MAX: Final = 2000
_INTERVAL_S: Final = 1.0
_TIMEOUT_S: Final = 2.0
_PAUSE_S: Final = 30.0
"""After a failure that may last: the topic may be missing for good."""
_SAID_AFTER_S: Final = 60.0
"""Errors that pass by themselves: a new topic has no leader yet, or the target is away."""

Write = Callable[[str, Iterable[Event]], object]


class EventLog:
    """`note` is safe in any thread, and never blocks. Events that can't be written wait, up to a maximum."""

    def __init__(
        self,
        flow: Flow,
        connector: ConnectorName,
        settings: ConnectionSettings,
        *,
        write: Write | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`write` replaces the writer; it raises SparkmirrorError for what can't be written."""
        self._log = flow_log(__name__, flow, connector)
        self._connector = connector
        self._topic = StateTopic.EVENTS.of(flow.source)
        self._node = f"{socket.gethostname()}:{os.getpid()}"
        self._clock = clock
        writer = TopicWriter(settings)
        self._write = write or (
            lambda topic, events: writer.write(
                topic, (event.to_record() for event in events), timeout_s=_TIMEOUT_S
            )
        )
        self._close = writer.close
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        self._lock = threading.Lock()
        self._failing_since: float | None = None
        self._is_said = False
        self._paused_until = 0.0
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
        self.note(EventKind.STARTED, f"runs in process {os.getpid()} on {socket.gethostname()}")
        return (Job("write events", _INTERVAL_S, self.flush, first_after_s=_INTERVAL_S),)

    def _finish(self) -> None:
        self.note(EventKind.STOPPED, "was stopped")
        self._paused_until = 0.0
        self.flush()
        self._close()

    def flush(self) -> None:
        """Write what waits. Called by `thread`."""
        if self._clock() < self._paused_until:
            return
        with self._lock:
            events, dropped = list(self._waiting), self._dropped
        if not events:
            return
        if dropped:
            events.append(self._event(EventKind.DROPPED, f"{dropped} events could not be written", ""))
        try:
            self._write(self._topic, events)
        except SparkmirrorError as error:
            self._note_failure(error, self._clock())
            return
        self._failing_since, self._is_said = None, False
        with self._lock:
            self._dropped -= dropped
            for _ in range(len(events) - bool(dropped)):
                self._waiting.popleft()

    def _note_failure(self, error: SparkmirrorError, now: float) -> None:
        """Say once that events are not written, at once or when that lasts."""
        if self._failing_since is None:
            self._failing_since = now
        lasts = not error.retriable or now - self._failing_since >= _SAID_AFTER_S
        if lasts:
            self._paused_until = now + _PAUSE_S
        if lasts and not self._is_said:
            self._log.warning("events are not written: %s", error)
            self._is_said = True
