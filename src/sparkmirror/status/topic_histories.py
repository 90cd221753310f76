"""Reads a flow's events and migrations from their topics, each on a thread, while they are asked for."""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, TypeVar

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.metrics.looks import EventsLook, MigrationsLook
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.storage.events import Event, parse_event
from sparkmirror.storage.migrations import migrations_of
from sparkmirror.storage.verified import Verified, verified_of

_EVENTS_KEPT: Final = 500
_LOOKED_AT_S: Final = 30.0
_PAUSE_S: Final = 10.0
"""After an error, before the topic is read again."""
_WAIT_S: Final = 0.1
_VERIFIED_EVERY_S: Final = 30.0
"""The interval for metrics, whose age doesn't matter much."""

L = TypeVar("L", EventsLook, MigrationsLook)
Poll = Callable[[float], Iterable[LogRecord]]
"""Returns the next records, none at the topic's end."""
Clock = Callable[[], float]


class _TopicHistory(ABC, Generic[L]):
    """`thread` reads for half a minute after each `look`, which is thread-safe."""

    def __init__(self, name: str, interval_s: float, tail: TopicTail, look: L, flow: Flow) -> None:
        self._poll: Poll = tail.poll
        self._clock: Clock = time.monotonic
        self._interval_s = interval_s
        self._job = f"read {name}"
        self._looked_at: float | None = None
        self._paused_until = 0.0
        self._is_read = False
        self._look: L = look
        self.thread = PeriodicThread(f"{name} history", flow_log(__name__, flow), self._jobs, tail.close)

    def _jobs(self) -> Iterable[Job]:
        return (Job(self._job, self._interval_s, self.read),)

    def look(self) -> L:
        """Return what was read until now; nothing is known before the first read."""
        self._looked_at = self._clock()
        return self._look

    def read(self) -> None:
        """Read what is new; the thread calls it."""
        now = self._clock()
        if now < self._paused_until or not self._is_due(now):
            return
        is_new = not self._is_read
        try:
            while records := list(self._poll(_WAIT_S)):
                self._take(records)
                is_new = True
        except SparkmirrorError as error:
            self._look = replace(self._look, trouble=str(error))
            self._paused_until = now + _PAUSE_S
            return
        self._is_read = True
        if is_new or self._look.trouble:
            self._look = self._made()

    def _is_due(self, now: float) -> bool:
        return self._looked_at is not None and now - self._looked_at <= _LOOKED_AT_S

    @abstractmethod
    def _take(self, records: Sequence[LogRecord]) -> None: ...

    @abstractmethod
    def _made(self) -> L: ...


class EventHistory(_TopicHistory[EventsLook]):
    """Keeps the last comparison of each partition, however many events came after it."""

    def __init__(
        self,
        flow: Flow,
        settings: ConnectionSettings,
        *,
        poll: Poll | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`poll` replaces the reader."""
        super().__init__(
            "events", 1.0, TopicTail(settings, StateTopic.EVENTS.of(flow.source)), EventsLook(), flow
        )
        self._poll, self._clock = poll or self._poll, clock or self._clock
        self._is_asked = False
        self._read_at: float | None = None
        self._verified: Mapping[TopicPartition, Verified] = {}
        self._events: deque[Event] = deque(maxlen=_EVENTS_KEPT)

    def verified(self) -> Mapping[TopicPartition, Verified]:
        """Return the last comparison of each partition; the thread looks whether there are others since."""
        self._is_asked = True
        return self._verified

    def _is_due(self, now: float) -> bool:
        is_asked = self._is_asked and (self._read_at is None or now - self._read_at >= _VERIFIED_EVERY_S)
        if not (is_asked or super()._is_due(now)):
            return False
        self._is_asked, self._read_at = False, now
        return True

    def _take(self, records: Sequence[LogRecord]) -> None:
        for event in filter(None, map(parse_event, records)):
            if found := verified_of(event):
                self._verified = {**self._verified, **found}
            # Details are long, and 500 events are kept.
            self._events.append(replace(event, details=None))

    def _made(self) -> EventsLook:
        return EventsLook(tuple(reversed(self._events)), verified=self._verified)


class MigrationHistory(_TopicHistory[MigrationsLook]):
    """Keeps the newest record of each key."""

    def __init__(
        self,
        flow: Flow,
        settings: ConnectionSettings,
        owner: str,
        *,
        poll: Poll | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`owner` is that of attempts. `poll` replaces the reader."""
        tail = TopicTail(settings, StateTopic.MIGRATIONS.of(flow.source))
        super().__init__("migrations", 2.0, tail, MigrationsLook(), flow)
        self._poll, self._clock = poll or self._poll, clock or self._clock
        self._owner = owner
        self._records: dict[bytes, LogRecord] = {}

    def _take(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            if record.key is None:
                continue
            self._records.pop(record.key, None)
            if record.value is not None:
                self._records[record.key] = record

    def _made(self) -> MigrationsLook:
        return MigrationsLook(migrations_of(self._records.values(), self._owner))
