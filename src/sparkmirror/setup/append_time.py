"""Finds topics of the target with LogAppendTime, since batches that are copied to them must be marked."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.settings.copy_partition import CopyPartition

_TIMESTAMP_TYPE: Final = "message.timestamp.type"
_APPEND_TIME: Final = "LogAppendTime"
_KNOWN_FOR_S: Final = 600.0
"""After that it may have been changed; Kafka's default for `refresh.topics.interval.seconds`."""


class AppendTimeTopics:
    """Asks about each topic once, and about all of them again after a while. One owner."""

    def __init__(self, target: Admin) -> None:
        self._target = target
        self._stamps: dict[tuple[str, bytes], bool] = {}
        self._asked_at = time.monotonic()
        self.unreadable: Sequence[Trouble] = ()
        """The topics that are not mirrored until something is known of them."""

    @property
    def is_due(self) -> bool:
        """Whether what is known is old."""
        return time.monotonic() - self._asked_at >= _KNOWN_FOR_S

    def noted(self, partitions: Sequence[CopyPartition]) -> tuple[CopyPartition, ...]:
        """The same partitions, as their target topics are; without those of which that can't be told.

        Raises KafkaError.
        """
        if self.is_due:
            self._stamps.clear()
        listed = self._target.listing().topics
        wanted = {
            topic: (topic, listed[topic].topic_id)
            for topic in {partition.target_topic for partition in partitions}
            if topic in listed
        }
        new = sorted(topic for topic, key in wanted.items() if key not in self._stamps)
        described, untold = self._target.known_topic_configs(new, [_TIMESTAMP_TYPE])
        self.unreadable = _unreadable(partitions, untold)
        if not self._stamps:
            self._asked_at = time.monotonic()
        found = {
            wanted[topic]: any(
                entry.name == _TIMESTAMP_TYPE and entry.value == _APPEND_TIME for entry in entries
            )
            for topic, entries in described.items()
        }
        known = self._stamps | found
        self._stamps = {key: known[key] for key in wanted.values() if key in known}
        stamping = {topic for (topic, _), stamps in self._stamps.items() if stamps}
        return tuple(
            replace(partition, target_stamps_append_time=True)
            if partition.target_topic in stamping
            else partition
            for partition in partitions
            if partition.target_topic not in untold
        )


def _unreadable(partitions: Sequence[CopyPartition], errors: Mapping[str, KafkaError]) -> Sequence[Trouble]:
    counts: dict[tuple[str, str], int] = {}
    for each in partitions:
        if each.target_topic in errors:
            of = each.source.topic, each.target_topic
            counts[of] = max(counts.get(of, 0), each.source.partition + 1)
    return [
        Trouble(
            Cause.of_error(TroubleWord.NOT_READ, Subject.TOPIC, remote, errors[remote]),
            topic,
            remote,
            partitions=(0, count),
        )
        for (topic, remote), count in counts.items()
    ]
