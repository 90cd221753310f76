"""Tells whether checkpoints still speak of the logs that the target has, by topics' ids and logs' ends."""

from collections.abc import Collection, Sequence

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.offsets.wire_records import Checkpoint


class TargetLogs:
    """Knows the logs of the target. Methods block, and raise KafkaError when it does not answer."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = ConsumerSettings(settings)
        self._admin = Admin(settings)
        self._ids: dict[str, bytes] = {}

    def replaced(self, topics: Collection[str]) -> frozenset[str]:
        """Return the topics that were deleted and created again since the last call."""
        listed = {name: topic for name, topic in self._admin.named(topics).items() if not topic.error}
        known = self._ids
        # A topic that is gone keeps its id: its successor has another one.
        self._ids = known | {name: topic.topic_id for name, topic in listed.items()}
        return frozenset(
            name for name, topic in listed.items() if is_another(known.get(name, b""), topic.topic_id)
        )

    def within(self, checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
        """Leave out checkpoints that are behind the end of their log; those with an unknown end stay."""
        ends = list_offsets(self._settings, {each.topic_partition for each in checkpoints}, LATEST)

        def holds(partition: TopicPartition, offset: int) -> bool:
            end = ends[partition]
            return offset <= end if isinstance(end, int) else True

        return [each for each in checkpoints if holds(each.topic_partition, each.downstream_offset)]

    def close(self) -> None:
        self._admin.close()
