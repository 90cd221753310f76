"""Makes the view of consumer groups: where they are on both clusters, and what they would read again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sparkmirror.domain.ids import GroupId
from sparkmirror.metrics.looks import GroupsLook
from sparkmirror.metrics.partition_table import Rows
from sparkmirror.view.flows import FlowView
from sparkmirror.view.group_index import GroupIndex
from sparkmirror.view.values import GroupPartitionView, GroupView


@dataclass(frozen=True, slots=True)
class GroupsView:
    """`names` is None before the first interval. The view of a group is made when it is asked for."""

    names: Sequence[GroupId] | None
    left_out: int
    age_s: float | None
    interval_s: float
    target_age_s: float | None
    reads_target: bool
    _look: GroupsLook
    _index: GroupIndex
    _view: Callable[[GroupId], GroupView]

    def matching(self, text: str = "") -> Sequence[GroupView]:
        """Return the groups whose names contain the text, in the order of their names."""
        names = self.names or ()
        return self._views([name for name in names if text in name] if text else names)

    def named(self, name: str) -> GroupView | None:
        group = GroupId(name)
        is_known = self.names is not None and (group in self._index.by_group or group in self._look.errors)
        return self._view(group) if is_known else None

    def of_topic(self, topic: str) -> Sequence[GroupView]:
        """Return the groups that read the topic, and those whose offsets can't be read."""
        if self.names is None:
            return ()
        reading = self._index.by_topic.get(topic, frozenset())
        return self._views(sorted(reading | self._look.errors.keys()))

    def _views(self, names: Sequence[GroupId]) -> Sequence[GroupView]:
        return Rows(range(len(names)), lambda at: self._view(names[at]))


def groups_of(flow: FlowView) -> GroupsView | None:
    """Return the groups of a flow; None where no checkpoint connector runs."""
    look, index = flow.checkpoints, flow.group_index
    if look is None:
        return None
    names = index.names if not look.errors else sorted(index.by_group.keys() | look.errors.keys())
    return GroupsView(
        None if look.partitions is None else names,
        look.left_out,
        look.age_s,
        look.interval_s,
        look.target_age_s,
        look.reads_target,
        look,
        index,
        partial(_group, flow, look),
    )


def _group(flow: FlowView, look: GroupsLook, name: GroupId) -> GroupView:
    is_read = look.reads_target and look.target_age_s is not None
    return GroupView(
        name,
        flow.group_index.partitions_of(name),
        name in look.active if is_read else None,
        look.errors.get(name),
    )


def lag_of(flow: FlowView, partition: GroupPartitionView) -> int | None:
    """Return how far the group is behind the source's end, None where that is unknown."""
    end = flow.topics.source_end(partition.source)
    return None if end is None else max(0, end - partition.committed)
