"""What a flow's mirror, Java's or this one, has told of offsets: how far it is, what is where there."""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import NamedTuple

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for
from sparkmirror.kafka.offsets import require_offsets
from sparkmirror.migrate.flow_access import FlowAccess
from sparkmirror.migrate.left_records import with_records
from sparkmirror.offsets.translation import BEFORE_HISTORY, SyncHistory
from sparkmirror.storage.offset_syncs import OffsetSyncsReader
from sparkmirror.storage.positions import Position, read_positions
from sparkmirror.storage.progress import PartitionState, ProgressReader, progress_topic

_READ_TIMEOUT_S = 60.0
_LOOKED_THROUGH_MAX = 1000
"""In offsets. Behind the last record that is told of there are markers at most, if the mirror is done."""


class Translation(NamedTuple):
    """`offset` is None where it can't be told. `is_settled`: nothing that the mirror does will better it."""

    offset: int | None
    is_settled: bool


class FlowOffsets:
    """As of the last `read`. One owner."""

    def __init__(self, access: FlowAccess) -> None:
        self._access = access
        self._positions: Mapping[TopicPartition, Position] = {}
        self._syncs: OffsetSyncsReader | None = None
        if access.checkpoint is not None:
            syncs = access.checkpoint
            self._syncs = OffsetSyncsReader(syncs.offset_syncs, syncs.settings.offset_syncs_topic)

    def close(self) -> None:
        if self._syncs is not None:
            self._syncs.close()

    def read(self, partitions: Collection[TopicPartition]) -> None:
        """Take in what the mirror has told by now. Raises KafkaError."""
        told = self._access
        positions, topic, source = told.positions, told.positions_topic, told.flow.source
        try:
            self._positions = read_positions(positions, topic, told.connector, source, partitions)
        except KafkaError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            self._positions = {}  # the flow has never run
        if self._syncs is not None:
            self._syncs.catch_up(_READ_TIMEOUT_S)

    def mirrored_to(self, partition: TopicPartition) -> int | None:
        """The next offset of the source to be copied; None before the mirror has begun with it.

        By its position or, where that is not to be found (Java's on a Connect cluster), its newest sync.
        """
        position, told_to = self._positions.get(partition), self._told_to(partition)
        known = [] if position is None else [position.offset + 1]
        known += [] if told_to is None else [told_to]
        return max(known, default=None)

    def translate(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Translation]:
        """Where on the target a reader goes on that is to read these offsets next. Raises KafkaError.

        Syncs are written now and then; the position, each second, says by itself where the newest run is.
        """
        told_to = {partition: self._told_to(partition) for partition in offsets}
        unclear = {
            partition: (known, offset)
            for partition, offset in offsets.items()
            if (known := told_to[partition]) is not None and 0 < offset - known <= _LOOKED_THROUGH_MAX
        }
        more_to_tell = with_records(self._access.consumer, unclear)
        return {
            partition: Translation(
                self._translate(partition, offset),
                self._is_told(told_to[partition], offset, partition in unclear)
                and partition not in more_to_tell,
            )
            for partition, offset in offsets.items()
        }

    def left_to_mirror(self, ends: Mapping[TopicPartition, int]) -> Collection[TopicPartition]:
        """Those in which there is a record before that end that is not on the target. Raises KafkaError."""
        begins = {partition: self.mirrored_to(partition) or 0 for partition in ends}
        unclear, left = {}, set()
        for partition, end in ends.items():
            behind = end - begins[partition]
            if 0 < behind <= _LOOKED_THROUGH_MAX:
                unclear[partition] = (begins[partition], end)
            elif behind:  # far, or ahead of the end: the topic began anew, and the mirror does not know yet
                left.add(partition)
        return left | set(with_records(self._access.consumer, unclear))

    def errors(self) -> Mapping[TopicPartition, str]:
        """What the mirror itself says of partitions that it can't get on with; Java's says nothing."""
        told = self._access
        with closing(ProgressReader(told.positions, progress_topic(told.flow.source))) as reader:
            try:
                reader.catch_up()
            except KafkaError:
                return {}
            return {
                source: report.error
                for (_, source), report in reader.poll().items()
                if report.state is not PartitionState.RUNNING and report.error is not None
            }

    def _history(self, partition: TopicPartition) -> SyncHistory | None:
        return None if self._syncs is None else self._syncs.histories.get(partition)

    def _translate(self, partition: TopicPartition, offset: int) -> int | None:
        position = self._positions.get(partition)
        run = None if position is None else position.run
        if run is not None and run.first_upstream <= offset <= run.last_upstream + 1:
            return offset + run.shift
        history = self._history(partition)
        found = BEFORE_HISTORY if history is None else history.translate(offset)
        return None if found == BEFORE_HISTORY else found

    def _told_to(self, partition: TopicPartition) -> int | None:
        """Behind the last record whose offset on the target is known."""
        history, position = self._history(partition), self._positions.get(partition)
        known = [] if history is None else [history.syncs[0].upstream_offset]
        known += [position.run.last_upstream] if position is not None and position.run is not None else []
        return max(known) + 1 if known else None

    @staticmethod
    def _is_told(told_to: int | None, offset: int, is_looked_through: bool) -> bool:
        return told_to is not None and (offset <= told_to or is_looked_through)


def existing_offsets(
    settings: ConsumerSettings, partitions: Collection[TopicPartition], which: int
) -> Mapping[TopicPartition, int | None]:
    """EARLIEST or LATEST offsets; None for a partition that does not exist. Raises KafkaError.

    One that has no leader for the moment is not missing.
    """
    if not partitions:
        return {}
    metadata = read_metadata(settings.connection, {partition.topic for partition in partitions})
    there = [each for each in partitions if each.partition < metadata.partitions.get(each.topic, 0)]
    for topic in {partition.topic for partition in partitions} - set(metadata.partitions):
        code = metadata.errors.get(topic, UNKNOWN_TOPIC_OR_PARTITION)
        if code != UNKNOWN_TOPIC_OR_PARTITION:
            needed = Needed(settings.connection, (Need.DESCRIBE_TOPIC.of(topic),))
            raise error_for(code, topic, needed=needed)
    return {**dict.fromkeys(partitions), **require_offsets(settings, there, which, metadata)}
