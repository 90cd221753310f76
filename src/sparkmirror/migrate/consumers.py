"""Moves consumer groups to the target of a flow, and back: looks at both clusters, writes offsets.

Which step is due follows from a look at both clusters (`domain.group_moves`). All that is stored is what was
overwritten, in the migrations topic, so that it can be restored.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connectors.source import why_not
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.admin import Admin
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.kafka.groups import Committed, Groups, ListedGroup, Offsets
from sparkmirror.kafka.offsets import EARLIEST, LATEST
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.migrate.flow_access import CheckpointAccess, FlowAccess
from sparkmirror.migrate.flow_offsets import FlowOffsets, Translation, existing_offsets
from sparkmirror.migrate.group_moves import (
    BackState,
    GroupBack,
    GroupMove,
    LeftBehind,
    PartitionBack,
    PartitionMove,
    WrittenOffset,
)
from sparkmirror.migrate.written_offsets import (
    migrations_topic,
    read_written,
    restored_record,
    written_record,
)
from sparkmirror.offsets.checkpoints import CheckpointBook, target_topic
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.policies.admin_writes import TopicCreation
from sparkmirror.storage.checkpoints import CheckpointsReader

_READ_TIMEOUT_S = 60.0
_TOPIC_CONFIGS = {"cleanup.policy": "compact"}

Refused = Mapping[TopicPartition, KafkaError]
Ends = Mapping[TopicPartition, int | None]
"""None for what does not exist."""


class _Logs(NamedTuple):
    """Begins and ends of the partitions of a look, each by its name on its own cluster."""

    source_begins: Ends
    source_ends: Ends
    target_begins: Ends
    target_ends: Ends
    counts: Mapping[str, int]
    """Numbers of partitions of the source's topics."""


class ConsumerMigration:
    """One flow that emits checkpoints. One owner. Every method blocks and raises KafkaError."""

    def __init__(
        self, access: FlowAccess, checkpoint: CheckpointAccess, *, leave_unknown: bool = False
    ) -> None:
        """`leave_unknown` moves groups although some of their offsets can't be translated."""
        self._access = access
        self._checkpoint = checkpoint
        self._leave_unknown = leave_unknown
        self._topic = migrations_topic(access.flow.source)
        self._offsets = FlowOffsets(access)
        topic = checkpoint.settings.checkpoints_topic
        self._checkpoints = CheckpointsReader(checkpoint.checkpoints, topic)
        self._source = Groups(checkpoint.source_admin)
        self._target = Groups(checkpoint.target_admin)

    def close(self) -> None:
        for client in (self._offsets, self._checkpoints, self._source, self._target):
            client.close()

    # there

    def look(self, groups: Collection[GroupId]) -> list[GroupMove]:
        """How far each group is."""
        at_source, at_target = self._source.listed(), self._target.listed()
        committed, there = _told_by(self._source, groups), _told_by(self._target, groups)
        mirrored = {group: self._mirrored(committed[group]) for group in groups}
        partitions = {partition for offsets in mirrored.values() for partition in offsets}
        self._offsets.read(partitions)
        logs = self._logs(partitions)
        book = self._read_checkpoints()
        return [
            self._move(
                group,
                (committed[group], there[group]),
                (at_source.get(group), at_target.get(group)),
                self._moves(mirrored[group], there[group], book.of_group(group), logs),
                logs,
            )
            for group in groups
        ]

    def write(self, move: GroupMove) -> Refused:
        """Write what is to be written. What was there before is kept first, to be restored one day."""
        wanted = {
            each.target: Committed(each.translated, each.metadata)
            for each in move.to_write
            if each.translated is not None
        }
        there = self._committed_there(move.group)
        kept = self._kept().get(move.group, {})
        records = []
        for partition, (offset, _) in wanted.items():
            now, before = there.get(partition), kept.get(partition)
            if before is not None and now is not None and now.offset == before.written:
                earlier, metadata = before.earlier, before.earlier_metadata  # our own is nobody's earlier one
            else:
                earlier, metadata = (None, "") if now is None else now
            records.append(written_record(move.group, WrittenOffset(partition, offset, earlier, metadata)))
        self._ensure_topic()
        self._store(records)
        return self._target.write(move.group, wanted)

    # and back

    def look_back(self, groups: Collection[GroupId]) -> list[GroupBack]:
        """What of each group can be taken back."""
        listed, kept = self._target.listed(), self._kept()
        syncs_by_itself = self._checkpoint.settings.sync_group_offsets_interval_s is not None
        found = []
        for group, committed in _told_by(self._target, groups).items():
            trouble = str(committed) if isinstance(committed, KafkaError) else None
            there = {} if isinstance(committed, KafkaError) else committed
            partitions = [
                PartitionBack(offset, there[partition].offset if partition in there else None)
                for partition, offset in sorted(kept.get(group, {}).items())
            ]
            is_active = group in listed and listed[group].is_active
            found.append(GroupBack(self._access.flow, group, partitions, is_active, trouble, syncs_by_itself))
        return found

    def restore(self, back: GroupBack) -> Refused:
        """Set back and remove what is to be; what nothing was refused of counts as done."""
        wanted = {
            each.offset.partition: Committed(each.offset.earlier, each.offset.earlier_metadata)
            for each in back.those(BackState.TO_RESTORE)
            if each.offset.earlier is not None
        }
        removed = [each.offset.partition for each in back.those(BackState.TO_REMOVE)]
        refused: dict[TopicPartition, KafkaError] = {}
        if wanted:
            refused.update(self._target.write(back.group, wanted))
        if removed:
            refused.update(self._target.remove(back.group, removed))
        done = [each.offset.partition for each in back.partitions if each.offset.partition not in refused]
        self._store([restored_record(back.group, partition) for partition in done])
        return refused

    # looking

    def _mirrored(self, committed: Offsets | KafkaError) -> Mapping[TopicPartition, Committed]:
        if isinstance(committed, KafkaError):
            return {}
        return {
            partition: offset
            for partition, offset in committed.items()
            if why_not(self._access.source, partition.topic) is None
        }

    def _logs(self, partitions: Collection[TopicPartition]) -> _Logs:
        source, target = self._access.consumer, self._access.target_consumer
        there = [self._target_partition(partition) for partition in partitions]
        return _Logs(
            existing_offsets(source, partitions, EARLIEST),
            existing_offsets(source, partitions, LATEST),
            existing_offsets(target, there, EARLIEST),
            existing_offsets(target, there, LATEST),
            read_metadata(source.connection, {partition.topic for partition in partitions}).partitions,
        )

    def _move(
        self,
        group: GroupId,
        committed: tuple[Offsets | KafkaError, Offsets | KafkaError],
        listed: tuple[ListedGroup | None, ListedGroup | None],
        partitions: Sequence[PartitionMove],
        logs: _Logs,
    ) -> GroupMove:
        on_source, on_target = listed
        return GroupMove(
            flow=self._access.flow,
            group=group,
            partitions=partitions,
            without_offset=_without_offset(partitions, logs.counts),
            left_behind=self._left_behind(committed[0], logs),
            has_members_on_source=on_source is not None and on_source.is_active,
            has_members_on_target=on_target is not None and on_target.is_active,
            trouble=self._trouble(group, committed, listed),
            leave_unknown=self._leave_unknown,
        )

    def _trouble(
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
                return f"it is no consumer group on {cluster}, but a {found.word} group"
        if listed[0] is None and not committed[0]:
            return f"there is no group {group} on {flow.source}"
        return None

    def _left_behind(self, committed: Offsets | KafkaError, logs: _Logs) -> list[LeftBehind]:
        left = []
        for partition in () if isinstance(committed, KafkaError) else sorted(committed):
            why = why_not(self._access.source, partition.topic)
            if why is None and logs.source_ends[partition] is None:
                why = "it does not exist any more"
            if why is not None:
                left.append(LeftBehind(partition, why))
        return left

    def _moves(
        self,
        committed: Mapping[TopicPartition, Committed],
        there: Offsets | KafkaError,
        checkpoints: Mapping[TopicPartition, Checkpoint],
        logs: _Logs,
    ) -> list[PartitionMove]:
        translations = self._offsets.translate(
            {
                partition: offset
                for partition, (offset, _) in committed.items()
                if logs.source_ends[partition] is not None
            }
        )
        now = {} if isinstance(there, KafkaError) else there
        moves = []
        for source, translation in sorted(translations.items()):
            offset, metadata = committed[source]
            target, end = self._target_partition(source), logs.source_ends[source]
            target_end = logs.target_ends[target]
            assert end is not None
            # A mirror that is ahead of the end speaks of a topic of that name that is gone.
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
                )
            )
        return moves

    def _best(
        self,
        source: TopicPartition,
        offset: int,
        translation: Translation,
        checkpoint: Checkpoint | None,
        logs: _Logs,
    ) -> Translation:
        """The mirror may have known more when it wrote the checkpoint than the syncs that are left tell."""
        target = self._target_partition(source)
        end = logs.target_ends[target]
        if end is None:
            return translation
        is_empty = logs.source_begins[source] == logs.source_ends[source]
        if translation.offset is None and is_empty and logs.target_begins[target] == end:
            return Translation(end, is_settled=True)  # nothing was ever there, or is left, on either side
        if checkpoint is None or checkpoint.upstream_offset > offset or checkpoint.downstream_offset > end:
            return translation
        return Translation(
            max(translation.offset or 0, checkpoint.downstream_offset),
            translation.is_settled or (translation.offset is None and checkpoint.upstream_offset == offset),
        )

    def _read_checkpoints(self) -> CheckpointBook:
        try:
            return CheckpointBook(self._checkpoints.catch_up(_READ_TIMEOUT_S))
        except KafkaError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return CheckpointBook()

    def _target_partition(self, source: TopicPartition) -> TopicPartition:
        topic = target_topic(self._access.source.policy, self._access.flow, source.topic)
        return TopicPartition(topic, source.partition)

    # storing

    def _committed_there(self, group: GroupId) -> Offsets:
        committed = self._target.committed([group])[group]
        if isinstance(committed, KafkaError):
            raise committed
        return committed

    def _kept(self) -> Mapping[GroupId, Mapping[TopicPartition, WrittenOffset]]:
        try:
            return read_written(self._checkpoint.target_admin, self._topic)
        except KafkaError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return {}

    def _ensure_topic(self) -> None:
        replicas = self._checkpoint.settings.checkpoints_replication_factor
        target = self._access.flow.target
        with closing(Admin(self._checkpoint.target_admin)) as admin:
            if self._topic in admin.partition_counts():
                return
            writes = self._checkpoint.admin_plugins.over(admin, target)
            created = writes.create_topics([TopicCreation(self._topic, 1, replicas, _TOPIC_CONFIGS)])
            for error in created.values():
                if error is not None:
                    raise error

    def _store(self, records: Sequence[LogRecord]) -> None:
        with closing(TopicWriter(self._checkpoint.target_admin)) as writer:
            if records:
                writer.write(self._topic, records)


def _told_by(cluster: Groups, groups: Collection[GroupId]) -> Mapping[GroupId, Offsets | KafkaError]:
    """Errors that last, for each group of its own. Raises those that don't: another look may do."""
    found = cluster.committed(groups)
    for offsets in found.values():
        if isinstance(offsets, KafkaError) and offsets.retriable:
            raise offsets
    return found


def _without_offset(moves: Sequence[PartitionMove], counts: Mapping[str, int]) -> list[TopicPartition]:
    """Of the topics that move."""
    moved = {move.source for move in moves}
    every = (
        TopicPartition(topic, number)
        for topic in sorted({partition.topic for partition in moved})
        for number in range(counts.get(topic, 0))
    )
    return [partition for partition in every if partition not in moved]
