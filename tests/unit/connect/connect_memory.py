"""Connect's topics in memory: a written record is read at once, by the same folds."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.read_back_log import ReadBackLog, Take
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import ConnectorConfig
from sparkmirror.domain.troubles import Trouble
from sparkmirror.kafka.data.topic_log import TopicTail, TopicWriter
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.readings import ConnectorReading
from sparkmirror.mirror.verifying import Verifying
from sparkmirror.periodic.jobs import PeriodicThread

NOWHERE = ConnectionSettings((("nowhere", 9092),))


class _Log(ReadBackLog):
    def __init__(self, settings: ConnectionSettings, topic: str, take: Take) -> None:
        super().__init__(settings, topic, take)
        self._deliver = take
        self._offsets = count()

    def write(self, records: Iterable[LogRecord], timeout_s: float) -> None:
        del timeout_s  # nothing to wait for
        self._deliver([record._replace(offset=next(self._offsets)) for record in records])


class _Writer(TopicWriter):
    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self.written: list[LogRecord] = []

    def write(
        self, topic: str, records: Iterable[LogRecord], *, timeout_s: float | None = None
    ) -> Sequence[int]:
        del topic, timeout_s  # there is one, and nothing to wait for
        first = len(self.written)
        self.written += records
        return range(first, len(self.written))


def config_topic() -> ConfigTopic:
    return ConfigTopic(NOWHERE, "configs", _Log)


def status_topic(tail: TopicTail | None = None) -> tuple[StatusTopic, list[LogRecord]]:
    """A topic that reads what `tail` has, and the records that are written to it."""
    writer = _Writer()
    return StatusTopic(NOWHERE, "statuses", tail=tail, writer=writer), writer.written


class Run:
    """A connector's run with preset values, and no threads."""

    threads: Sequence[PeriodicThread] = ()

    def __init__(self, config: ConnectorConfig) -> None:
        self.config = config
        self.slots = 1
        self.shares: Sequence[ConnectorConfig] | None = [{"task.index": "0"}]
        self.failed: dict[int, str] = {}
        self.lacks: Sequence[Trouble] = ()
        self.told: dict[str, Sequence[Trouble]] = {}
        self.written: set[str] = set()
        self.seen: ConnectorLook | None = None
        self.notes: list[str] = []
        self.verifying: Verifying | None = None
        self.begun_with: tuple[dict[str, str], str | None] | None = None

    def tasks(self) -> Sequence[ConnectorConfig] | None:
        return self.shares

    def failures(self) -> dict[int, str]:
        return self.failed

    def troubles(self) -> Sequence[Trouble]:
        return [*self.lacks, *(each for found in self.told.values() for each in found)]

    def tell(self, finder: str, found: Sequence[Trouble]) -> None:
        self.told[finder] = found

    def topics(self) -> set[str]:
        return self.written

    def note(self, text: str) -> None:
        self.notes.append(text)

    def configured(self, settings: Mapping[str, str], leader: str | None = None) -> None:
        self.begun_with = dict(settings), leader

    def reading(self) -> ConnectorReading | None:
        return None

    def look(self) -> ConnectorLook | None:
        return self.seen
