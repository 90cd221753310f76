"""Collects the facts about one consumer group from both clusters and the flow's own topics."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import Alias, GroupId, TopicPartition, numbers_by_topic
from sparkmirror.domain.rights import Need
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Subject, Trouble
from sparkmirror.groups.explained_lookups import looked_up
from sparkmirror.groups.flow_histories import FlowHistories
from sparkmirror.groups.group_explanation import CommittedPartition, GroupFacts, GroupThere
from sparkmirror.groups.offset_resolver import Wanted
from sparkmirror.kafka.admin.cluster_survey import survey
from sparkmirror.kafka.admin.tried_rights import is_denied
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.groups.consumer_groups import Groups
from sparkmirror.kafka.wire.error_codes import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    unless_missing,
)
from sparkmirror.offsets.checkpoints import CheckpointBook
from sparkmirror.settings.checkpoint import came_back, counterpart
from sparkmirror.settings.configured import ConfiguredCheckpoint, ConfiguredFlow
from sparkmirror.settings.topic_selection import why_not
from sparkmirror.storage.checkpoint_topic import read_checkpoints
from sparkmirror.storage.progress_reader import ProgressReader


def group_facts(settings: ConfiguredFlow, group: GroupId) -> GroupFacts:
    """Raises KafkaError when a cluster does not respond; what it refuses is among the facts."""
    flow, connector = settings.flow, settings.checkpoint
    if connector is None:
        return GroupFacts(flow, group, GroupThere(), GroupThere(), off_because=settings.checkpoint_off)
    source = _group_there(connector.source_admin, group)
    target = _group_there(connector.target_admin, group)
    checkpointing = connector.settings
    said = _said(settings)
    partitions = _partitions(settings, connector, group, source.committed, said)
    if checkpointing.sync_group_offsets_interval_s is not None:
        refusal, of_topics = _refusals(
            connector, flow.target, group, {each.target.topic for each in partitions}
        )
        target = replace(target, refusal=refusal)
        partitions = [replace(each, refusal=of_topics.get(each.target.topic)) for each in partitions]
    return GroupFacts(
        flow,
        group,
        source,
        target,
        partitions,
        refused_by=checkpointing.group_filter.refused_by(group),
        syncs_offsets=checkpointing.sync_group_offsets_interval_s is not None,
        refreshes=checkpointing.refresh_groups_interval_s is not None,
        troubles=[it for it in said if (it.cause.subject, it.what) == (Subject.GROUP, group)],
    )


def _said(settings: ConfiguredFlow) -> Sequence[Trouble]:
    """Read the mirror's last report; empty where it has not run, or where that may not be read."""
    topic = StateTopic.PROGRESS.of(settings.flow.source)
    names = [each.name for each in (settings.source, settings.checkpoint) if each is not None]
    with closing(ProgressReader(settings.worker_client, topic, may_be_missing=True)) as reader:
        try:
            reader.catch_up()
        except KafkaError:
            return ()
        return [trouble for name in names for trouble in reader.troubles_of(name)]


def _group_there(admin: ConnectionSettings, group: GroupId) -> GroupThere:
    with closing(Groups(admin)) as groups:
        listing = groups.listing()
        listed = listing.groups.get(group)
        committed = groups.committed([group])[group]
        if isinstance(committed, KafkaError):
            is_left_alone = listed is not None and not listed.commits_offsets
            error = None if is_left_alone else str(committed)
            committed = {}
        else:
            error = None
        if listed is None:
            return GroupThere(committed={}, error=error or next(map(str, listing.errors), None))
        members: list[str] = []
        if listed.is_active and listed.commits_offsets:
            found = groups.members({group: listed})[group]
            members = [str(found)] if isinstance(found, KafkaError) else list(map(str, found))
    return GroupThere(
        listed.word,
        listed.commits_offsets,
        listed.is_active,
        members,
        {partition: offset for partition, (offset, _) in committed.items()},
        error,
    )


def _refusals(
    connector: ConfiguredCheckpoint, target: Alias, group: GroupId, topics: Collection[str]
) -> tuple[str | None, Mapping[str, str]]:
    """Return what the target will refuse for want of a right: for the whole group, and by topic."""
    rights = {topic: Need.READ_TOPIC.of(topic) for topic in topics}
    of_group = Need.READ_GROUP.of(group)
    with closing(Cluster(connector.target_admin)) as cluster:
        denied = is_denied(cluster, of_group)
        action = f"write the offsets of group {group}"
        error = cluster.error(GROUP_AUTHORIZATION_FAILED, action, of_group) if denied else None
        found = survey(connector.target_admin, target, topics)
        return None if error is None else str(error), {
            topic: str(cluster.error(TOPIC_AUTHORIZATION_FAILED, f"{action} for {topic}", right))
            for topic, right in rights.items()
            if found.lacks(right)
        }


def _partitions(
    settings: ConfiguredFlow,
    connector: ConfiguredCheckpoint,
    group: GroupId,
    committed: Mapping[TopicPartition, int],
    said: Sequence[Trouble],
) -> list[CommittedPartition]:
    if not committed:
        return []
    with closing(FlowHistories(connector)) as reader:
        histories = reader.read()
    checkpoints = _checkpoints(connector).of_group(group)
    there = {partition: counterpart(connector.settings, partition) for partition in sorted(committed)}
    lookups = looked_up(
        connector,
        [
            Wanted(partition, committed[partition], target, histories[partition])
            for partition, target in there.items()
            if partition in histories
        ],
        checkpoints,
    )
    ends = _ends(connector.source_admin, there.keys())
    absent = _absent(connector.target_admin, set(there.values()))
    target_ends = _ends(connector.target_admin, set(there.values()) - absent)
    errors = {
        source: _why_absent(settings, source, target, said)
        if target in absent
        else _why_unreadable(settings, ends[source], target_ends[target])
        for source, target in there.items()
    }
    return [
        CommittedPartition(
            source,
            target,
            histories.get(source),
            checkpoints.get(target),
            _end(ends[source]),
            _end(target_ends.get(target)),
            _left_out(settings, connector, source.topic),
            errors[source],
            lookup=lookups.get(source, ""),
        )
        for source, target in there.items()
    ]


def _left_out(settings: ConfiguredFlow, connector: ConfiguredCheckpoint, topic: str) -> str | None:
    """The two connectors have filters of their own, which may be configured differently."""
    if came_back(connector.settings, topic):
        return None
    refused = connector.settings.topic_filter.refused_by(topic)
    if refused is None and settings.source is not None:
        mirrored = why_not(settings.source.settings, topic)
        refused = None if mirrored is None else f"a rule ({mirrored})"
    return refused


def _checkpoints(connector: ConfiguredCheckpoint) -> CheckpointBook:
    topic = connector.settings.checkpoints_topic
    return CheckpointBook(unless_missing(lambda: read_checkpoints(connector.checkpoints_consumer, topic), ()))


def _ends(
    admin: ConnectionSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    return list_offsets(ConsumerSettings(admin), partitions, LATEST)


def _end(offset: int | SparkmirrorError | None) -> int | None:
    return None if isinstance(offset, SparkmirrorError) else offset


def _absent(admin: ConnectionSettings, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Return those of the partitions that are not there, as far as their topics may be seen."""
    found = set()
    with closing(Cluster(admin)) as cluster:
        for topic, numbers in numbers_by_topic(partitions).items():
            with suppress(KafkaError):
                count = len(cluster.partitions(topic))
                found |= {TopicPartition(topic, number) for number in numbers if number >= count}
    return found


def _why_absent(
    settings: ConfiguredFlow, source: TopicPartition, target: TopicPartition, said: Sequence[Trouble]
) -> str:
    """Say that the copy is not there, and what the mirror says about that."""
    about = (Subject.TOPIC, source.topic)
    troubles = [it for it in said if (it.cause.subject, it.what) == about and not it.is_remark]
    why = next(
        (f": {it.word}: {it.text}" for it in troubles if source.partition in range(*it.partitions)), ""
    )
    return f"{target} is not on {settings.flow.target}{why}"


def _why_unreadable(
    settings: ConfiguredFlow, source: int | SparkmirrorError, target: int | SparkmirrorError
) -> str | None:
    """The error of the end that is unknown, if there is one."""
    if isinstance(target, SparkmirrorError):
        return f"on {settings.flow.target}: {target}"
    return f"on {settings.flow.source}: {source}" if isinstance(source, SparkmirrorError) else None
