"""What has to change on the target, and what can be copied, for given topics on both sides.

Topics and partitions are compared by the name the policy gives them on the target. The source's topics may
hold more than is mirrored; whatever the settings exclude is left out.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.connectors.source import MirrorSourceSettings, remote_topic, should_replicate
from sparkmirror.domain.config_filter import ConfigEntry, creation_configs
from sparkmirror.domain.copy_plan import CopyPartition
from sparkmirror.domain.ids import TopicPartition

_TOPIC_NAME_MAX: Final = 249


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic on the source cluster. Its configs matter only while the target lacks it."""

    partitions: int
    configs: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create on the target as the replica of `source`."""

    name: str
    source: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """A topic of the target that needs more partitions; `partitions` is the new total."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What to create on the target. `warnings` are for people."""

    creates: tuple[NewTopic, ...] = ()
    grows: tuple[GrowTopic, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """The partitions to copy, and those that wait for their counterpart on the target; both sorted."""

    ready: tuple[CopyPartition, ...] = ()
    waiting: tuple[CopyPartition, ...] = ()


def replicated_topics(
    settings: MirrorSourceSettings, source: Iterable[str], target: Container[str]
) -> tuple[tuple[str, str], ...]:
    """Source topic and remote topic of what is mirrored and exists on the target, sorted."""
    return tuple(pair for pair in _mirrored(settings, source) if pair[1] in target)


def missing_topics(
    settings: MirrorSourceSettings, source: Iterable[str], target: Container[str]
) -> tuple[str, ...]:
    """The source topics to mirror that the target lacks, sorted: whose configs `plan_topics` needs."""
    return tuple(topic for topic, remote in _mirrored(settings, source) if remote not in target)


def plan_topics(
    settings: MirrorSourceSettings, source: Mapping[str, SourceTopic], target: Mapping[str, int]
) -> TopicPlan:
    """What the target lacks. `target` maps its topics to their numbers of partitions.

    Nothing is ever deleted or shrunk: a topic that disappears at the source stays on the target.
    """
    creates: list[NewTopic] = []
    grows: list[GrowTopic] = []
    warnings: list[str] = []
    for topic, remote in _mirrored(settings, source):
        partitions = source[topic].partitions
        if remote in target:
            grows += [GrowTopic(remote, partitions)] if target[remote] < partitions else []
        elif len(remote) > _TOPIC_NAME_MAX:
            warnings.append(
                f"topic {topic} can't be mirrored: its name on the target, {remote}, has {len(remote)} "
                f"characters and Kafka allows {_TOPIC_NAME_MAX}"
            )
        else:
            creates.append(_new_topic(settings, topic, source[topic]))
    return TopicPlan(tuple(creates), tuple(grows), tuple(warnings))


def copy_partitions(
    settings: MirrorSourceSettings, source: Mapping[str, SourceTopic], target: Mapping[str, int]
) -> CopyPlan:
    """Which source partitions can be copied now: those whose counterpart exists on the target."""
    ready: list[CopyPartition] = []
    waiting: list[CopyPartition] = []
    for topic, remote in _mirrored(settings, source):
        existing = target.get(remote, 0)
        for partition in range(source[topic].partitions):
            copied = CopyPartition(TopicPartition(topic, partition), remote)
            (ready if partition < existing else waiting).append(copied)
    return CopyPlan(tuple(ready), tuple(waiting))


def _mirrored(settings: MirrorSourceSettings, source: Iterable[str]) -> list[tuple[str, str]]:
    return [
        (topic, remote_topic(settings, topic))
        for topic in sorted(source)
        if should_replicate(settings, topic)
    ]


def _new_topic(settings: MirrorSourceSettings, name: str, topic: SourceTopic) -> NewTopic:
    return NewTopic(
        name=remote_topic(settings, name),
        source=name,
        partitions=topic.partitions,
        replication_factor=settings.replication_factor,
        configs=creation_configs(settings.config_filter, topic.configs),
    )
