"""Connect's topics in memory: a written record is read at once, by the same folds."""

from collections.abc import Iterable, Sequence
from itertools import count

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.connectors.periodic import PeriodicThread
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.metrics.families import ConnectorReading

NOWHERE = ConnectionSettings((("nowhere", 9092),))


class _Log:
    def __init__(self, topic: ConfigTopic) -> None:
        self._topic = topic
        self._offsets = count()

    def write(self, records: Iterable[LogRecord], _timeout_s: float) -> None:
        self._topic._take([record._replace(offset=next(self._offsets)) for record in records])


class _Writer:
    def __init__(self) -> None:
        self.written: list[LogRecord] = []

    def write(self, _topic: str, records: Sequence[LogRecord]) -> Sequence[int]:
        first = len(self.written)
        self.written += records
        return range(first, len(self.written))


def config_topic() -> ConfigTopic:
    topic = ConfigTopic(NOWHERE, "configs")
    topic._log = _Log(topic)  # type: ignore[assignment]
    return topic


def status_topic() -> tuple[StatusTopic, list[LogRecord]]:
    """And what is written to it."""
    topic, writer = StatusTopic(NOWHERE, "statuses"), _Writer()
    topic._writer = writer  # type: ignore[assignment]
    return topic, writer.written


class Run:
    """A connector's run with preset values, and no threads."""

    threads: Sequence[PeriodicThread] = ()

    def __init__(self, config: ConnectorConfig) -> None:
        self.config = config
        self.slots = 1
        self.shares: Sequence[ConnectorConfig] | None = [{"task.index": "0"}]
        self.failed: dict[int, str] = {}
        self.needs: str | None = None
        self.written: set[str] = set()

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        return self.shares

    def failures(self) -> dict[int, str]:
        return self.failed

    def trouble(self) -> str | None:
        return self.needs

    def topics(self) -> set[str]:
        return self.written

    def reading(self) -> ConnectorReading | None:
        return None
