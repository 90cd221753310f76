"""Reads a flow's migrations from their topic, on a thread of its own, while somebody looks at them."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.metrics.looks import MigrationsLook
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.status.attention import Attention
from sparkmirror.status.event_history import Poll
from sparkmirror.storage.migrations import migrations_of
from sparkmirror.storage.promotions import migrations_topic

_INTERVAL_S: Final = 2.0
_WAIT_S: Final = 0.1


class MigrationHistory:
    """`thread` reads, while somebody asks; `look` is safe in any thread."""

    def __init__(
        self,
        flow: Flow,
        settings: ConnectionSettings,
        owner: str,
        *,
        poll: Poll | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` is that of attempts. `poll` replaces the reader: it returns the next records, or none."""
        tail = TopicTail(settings, migrations_topic(flow.source))
        self._poll = poll or tail.poll
        self._owner = owner
        self._attention = Attention(clock)
        self._records: dict[bytes, LogRecord] = {}
        self._look = MigrationsLook()
        self.thread = PeriodicThread("migrations", flow_log(__name__, flow), self._jobs, tail.close)

    def _jobs(self) -> Iterable[Job]:
        return (Job("read migrations", _INTERVAL_S, self.read),)

    def look(self) -> MigrationsLook:
        """Return what was read until now; nothing is known before the first read."""
        self._attention.look()
        return self._look

    def read(self) -> None:
        """Read what is new; the thread calls it."""
        if self._attention.is_paused or not self._attention.is_given:
            return
        is_new = self._look.known is None
        try:
            while records := list(self._poll(_WAIT_S)):
                self._take(records)
                is_new = True
        except SparkmirrorError as error:
            self._look = replace(self._look, trouble=str(error))
            self._attention.pause()
            return
        if is_new or self._look.trouble:
            self._look = MigrationsLook(migrations_of(self._records.values(), self._owner))

    def _take(self, records: Iterable[LogRecord]) -> None:
        for record in records:
            if record.key is None:
                continue
            self._records.pop(record.key, None)
            if record.value is not None:
                self._records[record.key] = record
