"""A topic that a history polls, by a clock of its own."""

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, Flow

FLOW = Flow(Alias("a"), Alias("b"))
CONNECTION = ConnectionSettings((("localhost", 1),))


class PolledTopic:
    def __init__(self) -> None:
        self.waiting: list[LogRecord] = []
        self.polls = 0
        self.error: SparkmirrorError | None = None
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    def poll(self, _timeout_s: float) -> list[LogRecord]:
        self.polls += 1
        if self.error is not None:
            raise self.error
        records, self.waiting = self.waiting, []
        return records
