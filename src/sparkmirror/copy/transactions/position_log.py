"""Finds the partitions of the positions topic that a task's transactions write to, and encodes positions."""

import time
from collections.abc import Mapping, Sequence

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.keyed_batches import KeyedBatch, keyed_batches, partition_of
from sparkmirror.kafka.data.partition_offsets import LATEST, require_offsets
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for
from sparkmirror.storage.positions import Position, position_key, position_record


class PositionLog:
    """Knows the partitions of the positions topic after `find`."""

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan
        self._partitions = 0
        self._by_target: dict[TopicPartition, TopicPartition] = {}
        self.ends: Mapping[TopicPartition, int] = {}
        """The log end offset of each partition that holds positions of this task, when it was found."""

    def find(self) -> None:
        """Look the topic up. Blocks. Raises KafkaError, one that names the missing right where it is that."""
        plan, state = self._plan, self._plan.state
        metadata = read_metadata(state.connection, [state.positions_topic])
        count = metadata.partitions.get(state.positions_topic, 0)
        if not count:
            code = metadata.errors.get(state.positions_topic, UNKNOWN_TOPIC_OR_PARTITION)
            needed = Needed(state.connection, (Need.DESCRIBE_TOPIC.of(state.positions_topic),))
            raise error_for(code, state.positions_topic, needed=needed)
        for copied in plan.partitions:
            key = position_key(plan.connector, plan.flow.source, copied.source)
            self._by_target[copied.target] = TopicPartition(state.positions_topic, partition_of(key, count))
        self._partitions = count
        used = sorted(set(self._by_target.values()))
        self.ends = require_offsets(ConsumerSettings(state.connection), used, LATEST, metadata)

    def partition_of(self, target: TopicPartition) -> TopicPartition:
        """The partition that holds the position of this partition of the target."""
        return self._by_target[target]

    def batches(self, positions: Mapping[TopicPartition, Position]) -> Sequence[KeyedBatch]:
        """The positions of these partitions of the source, encoded for the partitions that hold them."""
        plan = self._plan
        records = [
            position_record(plan.connector, plan.flow.source, source, position)
            for source, position in positions.items()
        ]
        return keyed_batches(plan.state.positions_topic, self._partitions, records, int(time.time() * 1000))
