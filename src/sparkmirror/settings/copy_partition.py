"""Names a partition that a flow copies, its target, and what the flow's settings make of it. Pure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.transforms.chain import Chain

if TYPE_CHECKING:
    from sparkmirror.transforms.partition_change import PartitionChange


class FormerTarget(NamedTuple):
    topic: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class CopyPartition:
    """A source partition, the topic that it is copied to, and what applies to it alone."""

    source: TopicPartition
    target_topic: str
    target_stamps_append_time: bool = False
    """Whether the target topic has `message.timestamp.type=LogAppendTime`."""
    preserves_offsets: bool = False
    """Whether each record has the offset of its source (`offsets.preserve`)."""
    is_copied_back: bool = False
    """Whether the same file has the opposite flow, and that copies the target topic to the source topic."""
    former_target: FormerTarget | None = None
    """The topic that was written to before the naming was changed, if that was so."""
    is_new: bool = False
    """Whether it appeared after the flow's first start: it is copied from its first record."""
    transforms: Chain | None = None
    """The chain that may change its records, if there is one."""

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.target_topic, self.source.partition)

    @property
    def change(self) -> "PartitionChange | None":
        """The change that transforms make to it; None if they make none."""
        if self.transforms is None:
            return None
        from sparkmirror.transforms.partition_change import PartitionChange  # noqa: PLC0415 - needs pyarrow

        return PartitionChange(self.transforms, self.source)
