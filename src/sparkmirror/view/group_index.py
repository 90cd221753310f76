"""Finds the offsets of a consumer group, and the groups of a topic, among those of all groups."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from sparkmirror.domain.ids import GroupId
from sparkmirror.metrics.looks import GroupPartitionLook


class GroupIndex:
    """Made when it is asked for the first time; serves as long as `partitions` is the same list."""

    def __init__(self, partitions: Sequence[GroupPartitionLook] | None) -> None:
        self.partitions = partitions

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
