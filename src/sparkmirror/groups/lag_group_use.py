"""Tells whether a group that is to show a mirror's lag (`lag.group.id`) is an application's."""

from collections.abc import Mapping

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.lag_groups import LAG_METADATA
from sparkmirror.domain.quantities import counted
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups

_SHOWN_MAX = 3


def used_by_others(groups: Groups, group: GroupId, *, also_members: bool = True) -> str | None:
    """Why the mirror may not commit for the group; None if nobody else has. Raises KafkaError.

    Brokers refuse commits for groups with members: they need not be asked each time.
    """
    listed = groups.listed().get(group) if also_members else None
    if listed is not None and not listed.commits_offsets:
        return f"is a {listed.word} group"
    committed = groups.committed([group])[group]
    if isinstance(committed, KafkaError):
        raise committed
    others = {each: found for each, found in committed.items() if found.metadata != LAG_METADATA}
    if others:
        return f"has offsets that are not the mirror's: {_shown(others)}"
    return "has members" if listed is not None and listed.is_active else None


def _shown(offsets: Mapping[TopicPartition, Committed]) -> str:
    first = [f"{partition} at {offsets[partition].offset}" for partition in sorted(offsets)[:_SHOWN_MAX]]
    more = len(offsets) - len(first)
    return ", ".join(first) + (f" and {counted(more, 'more partition')}" if more else "")


CHOOSE_ANOTHER = "choose a lag.group.id that no application uses; delete its offsets if none does"
