"""Finds topics that were mirrored to a topic of another name: the separator or the policy was changed since.

A position holds the id of the target topic that it is about, so that topic is known while it exists. Pure.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnTopicRecreated
from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.topics import TopicListing
from sparkmirror.settings.topic_selection import Pairs
from sparkmirror.storage.positions import Position

_REMEDY: Final = (
    "set on.topic.recreated to restart to copy all that the source has into the new topic, "
    "or set the naming (replication.policy.class, replication.policy.separator) back"
)


class RenamedTarget(NamedTuple):
    """`before` is the topic that was written to, `topic_id` its id, and `now` the one that is."""

    before: str
    topic_id: bytes
    now: str


def renamed_targets(
    positions: Mapping[TopicPartition, Position], pairs: Pairs, target: TopicListing
) -> Mapping[str, RenamedTarget]:
    """Return the renamed targets by source topic; `target` has the topics that exist."""
    names = {topic.topic_id: name for name, topic in target.topics.items() if topic.topic_id}
    remote = dict(pairs)
    found: dict[str, RenamedTarget] = {}
    for (topic, _), position in positions.items():
        topic_id, now = position.logs.target_id, remote.get(topic)
        before = names.get(topic_id)
        if before is not None and now is not None and before != now:
            found[topic] = RenamedTarget(before, topic_id, now)
    return found


def renamed_text(renamed: Mapping[str, RenamedTarget], reaction: OnTopicRecreated) -> tuple[str, str]:
    """Say in one line what the old and the new topics will have; and how to get the other."""
    before = some_of(sorted(each.before for each in renamed.values()))
    now = some_of(sorted(each.now for each in renamed.values()))
    was = (
        f"{some_of(sorted(renamed))} was mirrored to {before}, which keeps what it has and gets nothing more"
    )
    if reaction is OnTopicRecreated.RESTART:
        return (
            f"{was}; {now} gets all that the source has",
            "set the naming back to continue with the old one",
        )
    if reaction is OnTopicRecreated.FAIL:
        return f"{was}; {now} gets nothing while on.topic.recreated is fail", _REMEDY
    return f"{was}; {now} begins at the stored position, and lacks what is before it", _REMEDY
