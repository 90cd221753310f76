"""Moves consumer groups to the target of a flow, and back: surveys both clusters, writes offsets.

The step that is due follows from a survey (`group_move_steps`). Only offsets that were overwritten are
stored, in the migrations topic, so that they can be restored.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST
from sparkmirror.kafka.groups.consumer_group_members import Member
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups, ListedGroup, Offsets
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.migrate.migrations_log import MigrationsLog
from sparkmirror.migrate.moves.group_move_steps import (
    GroupMove,
    GroupRollback,
    NotMirrored,
    PartitionMove,
    PartitionRollback,
    RollbackState,
)
from sparkmirror.offsets.checkpoints import CheckpointBook, target_topic
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.settings.configured import ConfiguredCheckpoint
from sparkmirror.settings.topic_selection import why_not
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import FlowOffsets, Translation, existing_offsets
from sparkmirror.storage.checkpoint_topic import CheckpointsReader
from sparkmirror.storage.written_offsets import (
    WrittenOffset,
    read_written,
    restored_record,
    written_record,
)

_READ_TIMEOUT_S = 60.0

Refused = Mapping[TopicPartition, KafkaError]
Ends = Mapping[TopicPartition, int | None]
"""The end offset, or None where the partition does not exist."""


class _LogRanges(NamedTuple):
    """Start and end offsets of partitions, each by its name on its own cluster."""

    source_starts: Ends
    source_ends: Ends
    target_starts: Ends
    target_ends: Ends
    counts: Mapping[str, int]
    """Partition counts of the source's topics."""


class ConsumerMigration:
    """Migrates groups of a flow that emits checkpoints. Methods block and raise KafkaError."""

    def __init__(
        self, access: FlowAccess, checkpoint: ConfiguredCheckpoint, *, leave_untranslated: bool = False
    ) -> None:
        """`leave_untranslated` moves groups although some of their offsets can't be translated."""
        self._access = access
        self._checkpoint = checkpoint
        self._leave_untranslated = leave_untranslated
        self._log = MigrationsLog(
            access.flow,
            checkpoint.target_admin,
            checkpoint.admin_plugins,
            checkpoint.settings.checkpoints_replication_factor,
        )
        self._offsets = FlowOffsets(access)
        topic = checkpoint.settings.checkpoints_topic
        self._checkpoints = CheckpointsReader(checkpoint.checkpoints_consumer, topic)
        self._source = Groups(checkpoint.source_admin)
        self._target = Groups(checkpoint.target_admin)

    def close(self) -> None:
        for client in (self._offsets, self._checkpoints, self._source, self._target):
            client.close()

    # the move

    def survey(self, groups: Collection[GroupId]) -> list[GroupMove]:
        """The state of each group on both clusters."""
        on_source, on_target = self._source.listed(), self._target.listed()
        committed = _committed(self._source, groups)
        target_committed = _committed(self._target, groups)
        members = [_members(self._source, groups, on_source), _members(self._target, groups, on_target)]
        mirrored = {group: self._mirrored(committed[group]) for group in groups}
        partitions = {partition for offsets in mirrored.values() for partition in offsets}
        self._offsets.read(partitions)
        logs = self._logs(partitions)
        book = self._read_checkpoints()
        return [
            self._move(
                group,
                (committed[group], target_committed[group]),
                (on_source.get(group), on_target.get(group)),
                self._moves(mirrored[group], target_committed[group], book.of_group(group), logs),
                logs,
            ).with_members(*(known.get(group, ()) for known in members))
            for group in groups
        ]

    def write(self, move: GroupMove) -> Refused:
        """Write the translated offsets; the ones that they replace are stored before, to be restored."""
        wanted = {
            each.target: Committed(each.translated, each.metadata)
            for each in move.to_write
            if each.translated is not None
        }
        committed = self._committed_on_target(move.group)
        stored = self._stored().get(move.group, {})
        records = []
        for partition, (offset, _) in wanted.items():
            now, before = committed.get(partition), stored.get(partition)
            if before is not None and now is not None and now.offset == before.written:
                earlier, metadata = before.earlier, before.earlier_metadata  # not the offset that we wrote
            else:
                earlier, metadata = (None, "") if now is None else now
            records.append(written_record(move.group, WrittenOffset(partition, offset, earlier, metadata)))
        self._log.ensure()
        self._log.write(records)
        return self._target.write(move.group, wanted)

    # the roll-back

    def survey_rollback(self, groups: Collection[GroupId]) -> list[GroupRollback]:
        """Read, for each group, the offsets that a migration wrote and those that it replaced."""
        listed, stored = self._target.listed(), self._stored()
        syncs_by_itself = self._checkpoint.settings.sync_group_offsets_interval_s is not None
        found = []
        for group, committed in _committed(self._target, groups).items():
            obstacle = str(committed) if isinstance(committed, KafkaError) else None
            current = {} if isinstance(committed, KafkaError) else committed
            partitions = [
                PartitionRollback(offset, current[partition].offset if partition in current else None)
                for partition, offset in sorted(stored.get(group, {}).items())
            ]
            is_active = group in listed and listed[group].is_active
            found.append(
                GroupRollback(self._access.flow, group, partitions, is_active, obstacle, syncs_by_itself)
            )
        return found

    def restore(self, rollback: GroupRollback) -> Refused:
        """Restore the offsets before, remove those that were new; the ones not refused count as done."""
        wanted = {
            each.offset.partition: Committed(each.offset.earlier, each.offset.earlier_metadata)
            for each in rollback.in_state(RollbackState.TO_RESTORE)
            if each.offset.earlier is not None
        }
        removed = [each.offset.partition for each in rollback.in_state(RollbackState.TO_REMOVE)]
        refused: dict[TopicPartition, KafkaError] = {}
        if wanted:
            refused.update(self._target.write(rollback.group, wanted))
        if removed:
            refused.update(self._target.remove(rollback.group, removed))
        done = [each.offset.partition for each in rollback.partitions if each.offset.partition not in refused]
        self._log.write([restored_record(rollback.group, partition) for partition in done])
        return refused

    # the survey

    def _mirrored(self, committed: Offsets | KafkaError) -> Mapping[TopicPartition, Committed]:
        if isinstance(committed, KafkaError):
            return {}
        return {
            partition: offset
            for partition, offset in committed.items()
            if why_not(self._access.source, partition.topic) is None
        }

    def _logs(self, partitions: Collection[TopicPartition]) -> _LogRanges:
        source, target = self._access.consumer, self._access.target_consumer
        targets = [self._target_partition(partition) for partition in partitions]
        return _LogRanges(
            existing_offsets(source, partitions, EARLIEST),
            existing_offsets(source, partitions, LATEST),
            existing_offsets(target, targets, EARLIEST),
            existing_offsets(target, targets, LATEST),
            read_metadata(source.connection, {partition.topic for partition in partitions}).partitions,
        )

    def _move(
        self,
        group: GroupId,
        committed: tuple[Offsets | KafkaError, Offsets | KafkaError],
        listed: tuple[ListedGroup | None, ListedGroup | None],
        partitions: Sequence[PartitionMove],
        logs: _LogRanges,
    ) -> GroupMove:
        on_source, on_target = listed
        return GroupMove(
            flow=self._access.flow,
            group=group,
            partitions=partitions,
            without_offset=_without_offset(partitions, logs.counts),
            not_mirrored=self._not_mirrored(committed[0], logs),
            has_members_on_source=on_source is not None and on_source.is_active,
            has_members_on_target=on_target is not None and on_target.is_active,
            obstacle=self._obstacle(group, committed, listed),
            leave_untranslated=self._leave_untranslated,
        )

    def _obstacle(
        self,
        group: GroupId,
        committed: tuple[Offsets | KafkaError, Offsets | KafkaError],
        listed: tuple[ListedGroup | None, ListedGroup | None],
    ) -> str | None:
        flow = self._access.flow
        for offsets in committed:
            if isinstance(offsets, KafkaError):
                return str(offsets)
        for found, cluster in zip(listed, flow, strict=True):
            if found is not None and not found.commits_offsets:
                return f"it is not a consumer group on {cluster}, but a {found.word} group"
        if listed[0] is None and not committed[0]:
            return f"there is no group {group} on {flow.source}"
        return None

    def _not_mirrored(self, committed: Offsets | KafkaError, logs: _LogRanges) -> list[NotMirrored]:
        left = []
        for partition in () if isinstance(committed, KafkaError) else sorted(committed):
            why = why_not(self._access.source, partition.topic)
            if why is None and logs.source_ends[partition] is None:
                why = "it does not exist any more"
            if why is not None:
                left.append(NotMirrored(partition, why))
        return left

    def _moves(
        self,
        committed: Mapping[TopicPartition, Committed],
        target_committed: Offsets | KafkaError,
        checkpoints: Mapping[TopicPartition, Checkpoint],
        logs: _LogRanges,
    ) -> list[PartitionMove]:
        translations = self._offsets.translate(
            {
                partition: offset
                for partition, (offset, _) in committed.items()
                if logs.source_ends[partition] is not None
            }
        )
        now = {} if isinstance(target_committed, KafkaError) else target_committed
        moves = []
        for source, translation in sorted(translations.items()):
            offset, metadata = committed[source]
            target, end = self._target_partition(source), logs.source_ends[source]
            target_end = logs.target_ends[target]
            assert end is not None
            # A mirrored position beyond the end belongs to a deleted topic of the same name.
            is_of_this_log = (self._offsets.mirrored_to(source) or 0) <= end
            known = self._best(source, offset, translation, checkpoints.get(target), logs)
            moves.append(
                PartitionMove(
                    source=source,
                    target=target,
                    source_offset=offset,
                    source_end=end,
                    translated=known.offset,
                    is_settled=known.is_settled and target_end is not None and is_of_this_log,
                    target_offset=now[target].offset if target in now else None,
                    target_end=target_end,
                    metadata=metadata,
                    is_preserved=self._offsets.is_preserved(source) and known.offset == offset,
                )
            )
        return moves

    def _best(
        self,
        source: TopicPartition,
        offset: int,
        translation: Translation,
        checkpoint: Checkpoint | None,
        logs: _LogRanges,
    ) -> Translation:
        """The checkpoint may be more exact: it was written when older offset syncs still existed."""
        target = self._target_partition(source)
        end = logs.target_ends[target]
        if end is None:
            return translation
        is_empty = logs.source_starts[source] == logs.source_ends[source]
        if translation.offset is None and is_empty and logs.target_starts[target] == end:
            return Translation(end, is_settled=True)  # the partition is empty on both clusters
        if checkpoint is None or checkpoint.upstream_offset > offset or checkpoint.downstream_offset > end:
            return translation
        return Translation(
            max(translation.offset or 0, checkpoint.downstream_offset),
            translation.is_settled or (translation.offset is None and checkpoint.upstream_offset == offset),
        )

    def _read_checkpoints(self) -> CheckpointBook:
        return CheckpointBook(unless_missing(lambda: self._checkpoints.catch_up(_READ_TIMEOUT_S), ()))

    def _target_partition(self, source: TopicPartition) -> TopicPartition:
        topic = target_topic(self._access.source.policy, self._access.flow, source.topic)
        return TopicPartition(topic, source.partition)

    # the stored offsets

    def _committed_on_target(self, group: GroupId) -> Offsets:
        committed = self._target.committed([group])[group]
        if isinstance(committed, KafkaError):
            raise committed
        return committed

    def _stored(self) -> Mapping[GroupId, Mapping[TopicPartition, WrittenOffset]]:
        return unless_missing(lambda: read_written(self._checkpoint.target_admin, self._log.topic), {})


def _committed(cluster: Groups, groups: Collection[GroupId]) -> Mapping[GroupId, Offsets | KafkaError]:
    """Per group, its offsets or an error that is not retriable. Raises retriable errors."""
    found = cluster.committed(groups)
    for offsets in found.values():
        if isinstance(offsets, KafkaError) and offsets.retriable:
            raise offsets
    return found


def _members(
    cluster: Groups, groups: Collection[GroupId], listed: Mapping[GroupId, ListedGroup]
) -> Mapping[GroupId, Sequence[Member]]:
    """Return the members of the groups that have any. A group that may not be described is left out."""
    active = {
        group: listed[group]
        for group in groups
        if group in listed and listed[group].is_active and listed[group].commits_offsets
    }
    if not active:
        return {}
    found = cluster.members(active)
    return {group: members for group, members in found.items() if not isinstance(members, KafkaError)}


def _without_offset(moves: Sequence[PartitionMove], counts: Mapping[str, int]) -> list[TopicPartition]:
    """The partitions of the moved topics for which the group has no offset."""
    moved = {move.source for move in moves}
    every = (
        TopicPartition(topic, number)
        for topic in sorted({partition.topic for partition in moved})
        for number in range(counts.get(topic, 0))
    )
    return [partition for partition in every if partition not in moved]
