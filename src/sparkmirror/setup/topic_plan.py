"""Plans the topics to create or grow on the target, and the partitions to copy, from both sides' topics.

Topics and partitions are compared by the name the policy gives them on the target. The source's topics may
hold more than is mirrored; whatever the settings exclude is left out.

Pure.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.topics import ConfigEntry, TopicCreation
from sparkmirror.policies.config_filter import creation_configs
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import (
    MirrorSourceSettings,
    TopicDeletes,
    preserves_offsets,
    transforms_of,
)
from sparkmirror.settings.topic_selection import (
    Pairs,
    Selection,
    is_copied_back,
    remote_topic,
    should_replicate,
)
from sparkmirror.setup.topic_delete_plan import DeleteTopic


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic on the source cluster, whose configs matter only while the target lacks it."""

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

    @property
    def creation(self) -> TopicCreation:
        return TopicCreation(self.name, self.partitions, self.replication_factor, dict(self.configs))

    def without(self, configs: Container[str]) -> "NewTopic":
        return replace(self, configs=tuple(each for each in self.configs if each[0] not in configs))


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """A topic of the target that needs more partitions; `partitions` is the new total."""

    name: str
    partitions: int
    source: str = ""
    existing: int = 0


@dataclass(frozen=True, slots=True)
class TopicNote:
    """A remark for operators about a topic of the target or its source; nothing is done about it."""

    name: str
    source: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The changes to the target. `notes` inform operators."""

    creates: tuple[NewTopic, ...] = ()
    grows: tuple[GrowTopic, ...] = ()
    notes: tuple[TopicNote, ...] = ()
    deletes: tuple[DeleteTopic, ...] = ()
    """Deletions, including those that are not due yet."""
    held: str | None = None
    """Why nothing is deleted at all, although topics are gone."""


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
    settings: MirrorSourceSettings,
    source: Iterable[str],
    target: Container[str],
    pairs: Pairs | None = None,
) -> tuple[str, ...]:
    """The source topics to mirror that the target lacks, sorted: whose configs `plan_topics` needs."""
    pairs = _mirrored(settings, source) if pairs is None else pairs
    return tuple(topic for topic, remote in pairs if remote not in target)


def plan_topics(
    settings: MirrorSourceSettings,
    source: Mapping[str, SourceTopic],
    target: Mapping[str, int],
    pairs: Pairs | None = None,
) -> TopicPlan:
    """Plan what the target lacks. `target` maps its topics to their numbers of partitions.

    Nothing is ever shrunk, and `plan_deletes` decides about topics that disappear at the source.
    `pairs`, here and elsewhere, are those of a `Selection` that has seen the same source.
    """
    creates: list[NewTopic] = []
    grows: list[GrowTopic] = []
    notes: list[TopicNote] = []
    for topic, remote in _mirrored(settings, source) if pairs is None else pairs:
        partitions = source[topic].partitions
        existing = target.get(remote)
        if existing is not None:
            if existing < partitions:
                grows.append(GrowTopic(remote, partitions, topic, existing))
            elif existing > partitions:
                notes.append(TopicNote(remote, topic, _has_more(topic, partitions, existing)))
        else:
            creates.append(_new_topic(settings, topic, source[topic]))
    if settings.topic_deletes is TopicDeletes.NO:
        notes += _left_behind(settings, source, target)
    return TopicPlan(tuple(creates), tuple(grows), notes=tuple(notes))


def copy_partitions(
    settings: MirrorSourceSettings,
    source: Mapping[str, SourceTopic],
    target: Mapping[str, int],
    pairs: Pairs | None = None,
) -> CopyPlan:
    """The source partitions that can be copied now: those whose counterpart exists on the target."""
    preserves = preserves_offsets(settings)
    ready: list[CopyPartition] = []
    waiting: list[CopyPartition] = []
    for topic, remote in _mirrored(settings, source) if pairs is None else pairs:
        existing = target.get(remote, 0)
        is_preserved = preserves(topic)
        comes_back = is_preserved and is_copied_back(settings, topic)
        transforms = transforms_of(settings, topic)
        for partition in range(source[topic].partitions):
            copied = CopyPartition(
                TopicPartition(topic, partition),
                remote,
                preserves_offsets=is_preserved,
                is_copied_back=comes_back,
                transforms=transforms,
            )
            (ready if partition < existing else waiting).append(copied)
    return CopyPlan(tuple(ready), tuple(waiting))


def _mirrored(settings: MirrorSourceSettings, source: Iterable[str]) -> Pairs:
    return Selection(settings).select(source).pairs


def _has_more(topic: str, partitions: int, existing: int) -> str:
    return (
        f"it has {existing} partitions, {topic} at the source {partitions}: nothing is copied to the others, "
        "and producers with keys choose other partitions than at the source"
    )


def _left_behind(
    settings: MirrorSourceSettings, source: Container[str], target: Iterable[str]
) -> Iterable[TopicNote]:
    """The copies whose source is gone, where the policy derives the source topic from a name."""
    policy, alias = settings.policy, settings.flow.source
    for remote in sorted(target):
        topic = policy.upstream_topic(remote) if policy.topic_source(remote) == alias else None
        if topic is None or topic in source or topic == remote or policy.is_internal_topic(remote):
            continue
        if should_replicate(settings, topic) and remote_topic(settings, topic) == remote:
            yield TopicNote(
                remote, topic, f"the source has no {topic} any more, or hides it; this copy stays"
            )


def _new_topic(settings: MirrorSourceSettings, name: str, topic: SourceTopic) -> NewTopic:
    return NewTopic(
        name=remote_topic(settings, name),
        source=name,
        partitions=topic.partitions,
        replication_factor=settings.replication_factor,
        configs=creation_configs(settings.config_filter, topic.configs),
    )


def throttled_creation(cluster: Alias) -> str:
    """Say that a quota lets topics and partitions be created one by one (KIP-599)."""
    return (
        f"{cluster} throttles the creation of topics (controller_mutation_rate): it takes longer, "
        "and they are copied as they come"
    )
