"""Finds where a consumer group is, and the groups of a topic, among the offsets of all groups."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from sparkmirror.domain.ids import GroupId
from sparkmirror.metrics.looks import GroupPartitionLook
from sparkmirror.view.values import GroupPartitionView


class GroupIndex:
    """Made when it is asked for the first time; serves as long as `partitions` is the same list."""

    def __init__(self, partitions: Sequence[GroupPartitionLook] | None) -> None:
        self.partitions = partitions
        self._views: dict[GroupId, Sequence[GroupPartitionView]] = {}

    def partitions_of(self, group: GroupId) -> Sequence[GroupPartitionView]:
        """Made when they are shown for the first time."""
        known = self._views.get(group)
        if known is None:
            known = self._views[group] = [_partition(it) for it in self.by_group.get(group, ())]
        return known

    @cached_property
    def by_group(self) -> Mapping[GroupId, Sequence[GroupPartitionLook]]:
        found: dict[GroupId, list[GroupPartitionLook]] = defaultdict(list)
        for each in self.partitions or ():
            found[each.group].append(each)
        return dict(found)

    @cached_property
    def names(self) -> Sequence[GroupId]:
        return sorted(self.by_group)

    @cached_property
    def by_topic(self) -> Mapping[str, frozenset[GroupId]]:
        found: dict[str, set[GroupId]] = defaultdict(set)
        for each in self.partitions or ():
            found[each.source.topic].add(each.group)
        return {topic: frozenset(groups) for topic, groups in found.items()}


def _partition(look: GroupPartitionLook) -> GroupPartitionView:
    return GroupPartitionView(
        look.source,
        look.target,
        look.committed,
        look.translated,
        look.behind_max,
        look.checkpoint,
        look.written,
        _again(look),
        look.why,
    )


def _again(look: GroupPartitionLook) -> int | None:
    """Count from where it would continue, its checkpoint or its committed offset there, to where it is."""
    starts = [at for at in (look.written, look.checkpoint) if at is not None]
    if not starts or look.translated is None or look.behind_max is None:
        return None
    return max(0, look.translated + look.behind_max - max(starts))
