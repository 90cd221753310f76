"""Settings of MirrorCheckpointConnector, and the rules by which it emits checkpoints of a group."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from sparkmirror.domain.errors import PluginError
from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.domain.option_fields import FromOption
from sparkmirror.offsets.checkpoints import CheckpointBook, target_topic
from sparkmirror.offsets.resolution import ResolveOffsets
from sparkmirror.offsets.translation import BEFORE_HISTORY, SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.policies.filters import DefaultGroupFilter, GroupFilter, TopicFilter
from sparkmirror.policies.replication import ReplicationPolicy


@dataclass(frozen=True, slots=True)
class MirrorCheckpointSettings:
    """A MirrorCheckpointConnector's settings as values; an interval of None turns its job off."""

    flow: Flow
    policy: ReplicationPolicy
    group_filter: GroupFilter
    topic_filter: TopicFilter
    checkpoints_topic: str
    checkpoints_replication_factor: Annotated[int, FromOption("checkpoints.topic.replication.factor")]
    offset_syncs_topic: str
    refresh_groups_interval_s: float | None
    emit_checkpoints_interval_s: float
    sync_group_offsets_interval_s: float | None
    resolve: Annotated[ResolveOffsets, FromOption("translation.resolve")] = ResolveOffsets.ALL
    resolve_bytes_max: Annotated[int, FromOption("translation.resolve.bytes.max")] = 64 << 20
    on_cluster_change: Annotated[OnClusterChange, FromOption("on.cluster.change")] = OnClusterChange.STOP
    offset_syncs_on_source: bool = True
    reverse_syncs_topic: str | None = None
    """The opposite flow's syncs, on the other cluster than this one's. None unless offsets are translated
    back too."""


def named_groups(settings: MirrorCheckpointSettings) -> frozenset[GroupId]:
    """Return the groups that the user names: clusters list no group to a user who may not describe it."""
    if not isinstance(settings.group_filter, DefaultGroupFilter):
        return frozenset()
    return frozenset(map(GroupId, settings.group_filter.named))


def came_back(settings: MirrorCheckpointSettings, topic: str) -> bool:
    """Whether a topic of the source came from the target, and its groups' offsets are translated back."""
    is_theirs = settings.policy.topic_source(topic) == settings.flow.target
    return settings.reverse_syncs_topic is not None and is_theirs


def is_followed(settings: MirrorCheckpointSettings, topic: str) -> bool:
    """Whether a topic's groups get checkpoints; a topic that came back was selected by the opposite flow.

    One at which a plug-in fails gets none: the source connector says why it is not mirrored.
    """
    try:
        is_selected = settings.topic_filter.should_replicate(topic) or came_back(settings, topic)
        return is_selected and bool(counterpart(settings, TopicPartition(topic, 0)).topic)
    except PluginError:
        return False


class SelectedGroups(NamedTuple):
    """The groups that the filter selects, and those at which a plug-in fails."""

    groups: list[GroupId]
    failed: Mapping[GroupId, PluginError]


def selected_groups(settings: MirrorCheckpointSettings, groups: Iterable[GroupId]) -> SelectedGroups:
    """Ask the filter about each group: a failure spoils its group only."""
    found = SelectedGroups([], failed := {})
    for group in groups:
        try:
            if settings.group_filter.should_replicate(group):
                found.groups.append(group)
        except PluginError as error:
            failed[group] = error
    return found


def counterpart(settings: MirrorCheckpointSettings, partition: TopicPartition) -> TopicPartition:
    """The partition on the target that a partition of the source is mirrored to."""
    topic = partition.topic
    if came_back(settings, topic):  # it may have come from further away: there it has an alias less
        topic = settings.policy.upstream_topic(topic) or topic
    else:
        topic = target_topic(settings.policy, settings.flow, topic)
    return TopicPartition(topic, partition.partition)


def counterparts(
    settings: MirrorCheckpointSettings, histories: Mapping[TopicPartition, SyncHistory]
) -> Mapping[TopicPartition, SyncHistory]:
    """The sync histories by the partitions' names on the target."""
    return {counterpart(settings, partition): history for partition, history in histories.items()}


def news_of(
    settings: MirrorCheckpointSettings,
    group: GroupId,
    committed: Mapping[TopicPartition, tuple[int, str]],
    histories: Mapping[TopicPartition, SyncHistory],
    book: CheckpointBook,
) -> Iterator[Checkpoint]:
    """The new checkpoints of a group: one for each partition whose translated offset has changed.

    `committed` are offsets and metadata on the source. A partition that the flow does not mirror, without a
    sync, or with an offset older than all of them, is left out.
    """
    for partition, (offset, metadata) in committed.items():
        history = histories.get(partition)
        if history is None or not is_followed(settings, partition.topic):
            continue
        translated = history.translate(offset)
        if translated != BEFORE_HISTORY:
            checkpoint = Checkpoint(group, counterpart(settings, partition), offset, translated, metadata)
            if book.is_news(checkpoint, history):
                yield checkpoint
