"""Makes the view of consumer groups: where they are on both clusters, and what they would read again."""

from collections import defaultdict
from collections.abc import Mapping

from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.metrics.looks import GroupPartitionLook, GroupsLook
from sparkmirror.view.flows import FlowView
from sparkmirror.view.values import GroupPartitionView, GroupsView, GroupView


def groups_of(flow: FlowView) -> GroupsView | None:
    """Made when asked for: few look at groups. None where no checkpoint connector runs."""
    if flow.checkpoints is None:
        return None
    partitions = (partition for topic in flow.topics for partition in topic.partitions)
    return _groups(flow.checkpoints, {it.source: it.source_end for it in partitions})


def _groups(look: GroupsLook, ends: Mapping[TopicPartition, int | None]) -> GroupsView:
    by_group: dict[GroupId, list[GroupPartitionView]] = defaultdict(list)
    for partition in look.partitions or ():
        by_group[partition.group].append(_partition(partition, ends.get(partition.source)))
    is_read = look.reads_target and look.target_age_s is not None
    groups = [
        GroupView(
            group, by_group.get(group, ()), group in look.active if is_read else None, look.errors.get(group)
        )
        for group in sorted(by_group.keys() | look.errors.keys())
    ]
    return GroupsView(
        None if look.partitions is None else groups,
        look.left_out,
        look.age_s,
        look.interval_s,
        look.target_age_s,
        look.reads_target,
    )


def _partition(look: GroupPartitionLook, end: int | None) -> GroupPartitionView:
    return GroupPartitionView(
        look.source,
        look.target,
        look.committed,
        None if end is None else max(0, end - look.committed),
        look.translated,
        look.behind_max,
        look.checkpoint,
        look.written,
        _again(look),
        look.why,
    )


def _again(look: GroupPartitionLook) -> int | None:
    """From where it would continue to where it is: its checkpoint, or what was committed for it there."""
    starts = [at for at in (look.written, look.checkpoint) if at is not None]
    if not starts or look.translated is None or look.behind_max is None:
        return None
    return max(0, look.translated + look.behind_max - max(starts))
