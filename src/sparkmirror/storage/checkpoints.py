"""Checkpoints in MM2's bytes, as a mirror has left them on the target."""

from collections.abc import Iterator

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.wire_records import Checkpoint
from sparkmirror.kafka.topic_log import read_topic


def read_checkpoints(
    settings: ConnectionSettings, topic: str, *, deadline_s: float = 60.0
) -> Iterator[Checkpoint]:
    """Every checkpoint up to the topic's end, the oldest first, without what is none. Raises KafkaError."""
    for record in read_topic(settings, topic, deadline_s=deadline_s):
        try:
            yield Checkpoint.decode(record.key or b"", record.value or b"")
        except MalformedRecordError:
            continue
