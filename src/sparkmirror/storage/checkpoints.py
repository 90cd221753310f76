"""Checkpoints in MM2's bytes, as a mirror has left them on the target."""

from collections.abc import Collection

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.wire_records import Checkpoint
from sparkmirror.kafka.topic_log import read_topic


def read_checkpoints(
    settings: ConnectionSettings, topic: str, *, deadline_s: float = 60.0
) -> Collection[Checkpoint]:
    """The last checkpoint of every group and partition, without what somebody has removed. Raises KafkaError.

    What is no checkpoint is left out.
    """
    last: dict[bytes, Checkpoint] = {}
    for record in read_topic(settings, topic, deadline_s=deadline_s):
        key = record.key or b""
        if record.value is None:
            last.pop(key, None)
            continue
        try:
            last[key] = Checkpoint.decode(key, record.value)
        except MalformedRecordError:
            continue
    return last.values()
