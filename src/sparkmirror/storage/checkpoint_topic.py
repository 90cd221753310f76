"""Reads the checkpoints that a mirror has written to the target, in MM2's bytes."""

from collections.abc import Collection, Iterable

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.kafka.data.topic_log import TopicTail, read_topic
from sparkmirror.offsets.wire_records import Checkpoint


def read_checkpoints(
    settings: ConnectionSettings, topic: str, *, deadline_s: float = 60.0
) -> Collection[Checkpoint]:
    """The last checkpoint of every group and partition, without deleted ones. Raises KafkaError.

    Records that are no checkpoints are ignored.
    """
    last: dict[bytes, Checkpoint] = {}
    _take(last, read_topic(settings, topic, deadline_s=deadline_s))
    return last.values()


class CheckpointsReader:
    """Reads checkpoints repeatedly; the topic may be missing."""

    def __init__(self, settings: ConnectionSettings, topic: str) -> None:
        self._tail = TopicTail(settings, topic, may_be_missing=True)
        self._last: dict[bytes, Checkpoint] = {}

    def catch_up(self, deadline_s: float) -> Collection[Checkpoint]:
        """Read up to the topic's present end. Raises KafkaError."""
        _take(self._last, self._tail.read_to_end(deadline_s))
        return self._last.values()

    def close(self) -> None:
        self._tail.close()


def _take(last: dict[bytes, Checkpoint], records: Iterable[LogRecord]) -> None:
    for record in records:
        key = record.key or b""
        if record.value is None:
            last.pop(key, None)
            continue
        try:
            last[key] = Checkpoint.decode(key, record.value)
        except MalformedRecordError:
            continue
