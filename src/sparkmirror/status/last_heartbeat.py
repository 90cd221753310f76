"""Follows the heartbeats that a flow emits into its target: they show that its mirror runs, Java's too."""

from typing import Final

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.offsets.wire_records import Heartbeat
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import existing_offsets

_READ_AT_FIRST: Final = 1000
"""The last ones, of all flows into the target; a flow emits one a second."""
_READ_TIMEOUT_S: Final = 60.0


class LastHeartbeat:
    """Keeps the last heartbeat. Not thread-safe; its owner closes it."""

    def __init__(self, access: FlowAccess) -> None:
        self._access = access
        self._tail: TopicTail | None = None
        self._last_ms: int | None = None

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()

    def read(self) -> int | None:
        """Return when the last one was emitted, in epoch ms; None where there is none. Raises KafkaError."""
        if self._access.heartbeat.emit:
            self._read()
        return self._last_ms

    def _read(self) -> None:
        topic, clients = self._access.heartbeat.topic, self._access.heartbeat_admin
        if self._tail is None:
            partition = TopicPartition(topic, 0)
            end = existing_offsets(ConsumerSettings(clients), [partition], LATEST)[partition]
            if end is None:
                return
            self._tail = TopicTail(clients, topic, max(0, end - _READ_AT_FIRST))
        for record in self._tail.read_to_end(_READ_TIMEOUT_S):
            try:
                heartbeat = Heartbeat.decode(record.key or b"", record.value or b"")
            except MalformedRecordError:
                continue
            if heartbeat.flow == self._access.flow:
                self._last_ms = heartbeat.timestamp_ms
