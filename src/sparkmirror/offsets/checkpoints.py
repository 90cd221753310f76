"""Decides which translated offsets become checkpoints, and which of them a group on the target gets.

The rules are those of Java's MirrorCheckpointTask (KIP-382, KIP-545, KAFKA-15905).
"""

from collections.abc import Iterable, Mapping

from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.policies.replication import ReplicationPolicy

OfGroup = Mapping[TopicPartition, Checkpoint]
"""A group's last checkpoints, by the target's partitions."""


def target_topic(policy: ReplicationPolicy, flow: Flow, topic: str) -> str:
    """The name on the target of a topic of the source. A topic that came from there has its first name."""
    if policy.topic_source(topic) == flow.target:
        return policy.original_topic(topic)
    return policy.format_remote_topic(flow.source, topic)


class CheckpointBook:
    """The last checkpoint of every group and partition, those of earlier lives included."""

    def __init__(self, known: Iterable[Checkpoint] = ()) -> None:
        self._last: dict[GroupId, dict[TopicPartition, Checkpoint]] = {}
        for checkpoint in known:
            self.note(checkpoint)

    def is_news(self, checkpoint: Checkpoint, history: SyncHistory) -> bool:
        """Whether it's the first, a step forward, or follows a reset of the group to an earlier offset.

        A translation that is behind the last one though the group is not means nothing: syncs between
        were forgotten. Only where syncs refute the last one, the target has lost its log since.
        """
        last = self.of_group(checkpoint.group).get(checkpoint.topic_partition)
        return (
            last is None
            or checkpoint.upstream_offset < last.upstream_offset
            or checkpoint.downstream_offset > last.downstream_offset
            or (checkpoint.downstream_offset < last.downstream_offset and is_refuted(last, history))
        )

    def note(self, checkpoint: Checkpoint) -> None:
        """Record that this checkpoint is in the topic."""
        self._last.setdefault(checkpoint.group, {})[checkpoint.topic_partition] = checkpoint

    def all(self) -> list[Checkpoint]:
        """The last ones."""
        return [checkpoint for of_group in self._last.values() for checkpoint in of_group.values()]

    def of_group(self, group: GroupId) -> OfGroup:
        return self._last.get(group, {})


def is_refuted(checkpoint: Checkpoint, history: SyncHistory | None) -> bool:
    """Whether by the syncs a group would miss records there; Java continues with such a checkpoint."""
    return history is not None and history.refutes(checkpoint.upstream_offset, checkpoint.downstream_offset)


def offsets_to_write(checkpoints: OfGroup, committed: Mapping[TopicPartition, int]) -> OfGroup:
    """The checkpoints ahead of what the group, idle or unknown there, has committed on the target.

    A group is never set back, and not written again where it is.
    """
    return {
        partition: checkpoint
        for partition, checkpoint in checkpoints.items()
        if checkpoint.downstream_offset > committed.get(partition, -1)
    }
