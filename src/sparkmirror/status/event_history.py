"""Reads a flow's last events from its events topic, on a thread of its own, while somebody looks at them.

The last comparison of each partition is kept, however many events came after it.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.metrics.looks import EventsLook
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.status.attention import Attention
from sparkmirror.storage.events import Event, events_topic, parse_event
from sparkmirror.storage.verified import Verified, verified_of

_KEPT: Final = 500
_INTERVAL_S: Final = 1.0
_WAIT_S: Final = 0.1
_VERIFIED_EVERY_S: Final = 30.0
"""For metrics, whose age doesn't matter much."""

Poll = Callable[[float], Iterable[LogRecord]]


class EventHistory:
    """`thread` reads, while somebody asks; `look` and `verified` are safe in any thread."""

    def __init__(
        self,
        flow: Flow,
        settings: ConnectionSettings,
        *,
        poll: Poll | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`poll` replaces the reader: it returns the next records, none at the topic's end."""
        tail = TopicTail(settings, events_topic(flow.source))
        self._poll = poll or tail.poll
        self._clock = clock
        self._attention = Attention(clock)
        self._is_asked = False
        self._read_at: float | None = None
        self._verified: Mapping[TopicPartition, Verified] = {}
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._look = EventsLook()
        self.thread = PeriodicThread("event history", flow_log(__name__, flow), self._jobs, tail.close)

    def _jobs(self) -> Iterable[Job]:
        return (Job("read events", _INTERVAL_S, self.read),)

    def look(self) -> EventsLook:
        """Return what was read until now; the thread reads on for half a minute."""
        self._attention.look()
        return self._look

    def verified(self) -> Mapping[TopicPartition, Verified]:
        """The last comparison of each partition; the thread looks whether there are others since."""
        self._is_asked = True
        return self._verified

    def read(self) -> None:
        """Read what is new; the thread calls it."""
        now = self._clock()
        if self._attention.is_paused or not self._is_due(now):
            return
        self._is_asked, self._read_at = False, now
        try:
            count = 0
            while records := list(self._poll(_WAIT_S)):
                count += len(records)
                self._take(event for it in records if (event := parse_event(it)) is not None)
        except SparkmirrorError as error:
            self._look = replace(self._look, trouble=str(error))
            self._attention.pause()
            return
        if count or self._look.trouble or self._look.newest_first is None:
            self._look = EventsLook(tuple(reversed(self._events)), verified=self._verified)

    def _is_due(self, now: float) -> bool:
        if self._attention.is_given:
            return True
        return self._is_asked and (self._read_at is None or now - self._read_at >= _VERIFIED_EVERY_S)

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if found := verified_of(event):
                self._verified = {**self._verified, **found}
            # Details are long, and 500 events are kept.
            self._events.append(replace(event, details=None))
