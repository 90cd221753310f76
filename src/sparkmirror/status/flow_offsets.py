"""Translates offsets of a flow, by the positions and offset syncs of its mirror, Java's or this one."""

from collections.abc import Collection, Mapping
from contextlib import closing
from functools import partial
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.record_batch import CONTROL, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import list_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for, unless_missing
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.offsets.translation import Place, SyncHistory
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.storage.offset_sync_topic import OffsetSyncsReader
from sparkmirror.storage.positions import Position, StoredPositions, read_stored_positions
from sparkmirror.storage.progress import PartitionState
from sparkmirror.storage.progress_reader import ProgressReader

_READ_TIMEOUT_S = 60.0
_SEARCHED_MAX = 1000
"""The number of offsets searched. Once all is copied, only markers follow the last offset sync's record."""


class Translation(NamedTuple):
    """`offset` is None where it is unknown. `is_settled`: the mirror will not make it more exact."""

    offset: int | None
    is_settled: bool


class FlowOffsets:
    """Has the positions and offset syncs as of the last `read`. Not thread-safe."""

    def __init__(self, access: FlowAccess) -> None:
        self._access = access
        self._stored = StoredPositions({}, None)
        self._preserves = preserves_offsets(access.source)
        self._syncs: OffsetSyncsReader | None = None
        if access.checkpoint is not None:
            syncs = access.checkpoint
            self._syncs = OffsetSyncsReader(
                syncs.offset_syncs_consumer, syncs.settings.offset_syncs_topic, may_be_missing=True
            )

    def close(self) -> None:
        if self._syncs is not None:
            self._syncs.close()

    def read(self, partitions: Collection[TopicPartition]) -> None:
        """Read the positions and offset syncs that exist now. Raises KafkaError."""
        access = self._access
        positions, topic, source = access.positions, access.positions_topic, access.flow.source
        self._stored = unless_missing(
            lambda: read_stored_positions(positions, topic, access.connector, source, partitions),
            StoredPositions({}, None),  # the flow has never run
        )
        if self._syncs is not None:
            unless_missing(partial(self._syncs.catch_up, _READ_TIMEOUT_S), None)

    @property
    def stored_ms(self) -> int | None:
        """Returns when the last position was stored, in epoch ms; None without any."""
        return self._stored.newest_ms

    def mirrored_to(self, partition: TopicPartition) -> int | None:
        """The next source offset to be copied; None before the mirror has begun with the partition."""
        return next_offset(self._stored.of.get(partition), self._known_to(partition))

    def position(self, partition: TopicPartition) -> Position | None:
        return self._stored.of.get(partition)

    def is_preserved(self, partition: TopicPartition) -> bool:
        """Return whether its records have the source's offsets (`offsets.preserve`)."""
        is_known = partition in self._stored.of
        return self._preserves(partition.topic) and is_known and not self.is_translated(partition)

    def is_translated(self, partition: TopicPartition) -> bool:
        """Return whether its offsets could no longer be preserved (`offsets.on.mismatch`)."""
        position = self._stored.of.get(partition)
        return position is not None and position.is_translated

    def translate(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Translation]:
        """The target offsets at which a consumer of these source offsets continues. Raises KafkaError.

        Offset syncs are written now and then; the position, each second, also holds the newest run.
        """
        known_to = {partition: self._known_to(partition) for partition in offsets}
        unclear = {
            partition: (known, offset)
            for partition, offset in offsets.items()
            if (known := known_to[partition]) is not None and 0 < offset - known <= _SEARCHED_MAX
        }
        with_more = with_records(self._access.consumer, unclear)
        return {
            partition: Translation(
                None if (place := self.place(partition, offset)) is None else place.offset,
                self._is_known(known_to[partition], offset, partition in unclear)
                and partition not in with_more,
            )
            for partition, offset in offsets.items()
        }

    def left_to_mirror(self, ends: Mapping[TopicPartition, int]) -> Collection[TopicPartition]:
        """The partitions with a record before that end that is not on the target. Raises KafkaError."""
        begins = {partition: self.mirrored_to(partition) or 0 for partition in ends}
        unclear, left = {}, set()
        for partition, end in ends.items():
            behind = end - begins[partition]
            if 0 < behind <= _SEARCHED_MAX:
                unclear[partition] = (begins[partition], end)
            elif (
                behind
            ):  # far, or beyond the end: the topic was created again, and the mirror has not noticed yet
                left.add(partition)
        return left | set(with_records(self._access.consumer, unclear))

    def errors(self) -> Mapping[TopicPartition, str]:
        """The mirror's own error for each partition that it can't copy; Java's mirror reports none."""
        access = self._access
        topic = StateTopic.PROGRESS.of(access.flow.source)
        with closing(ProgressReader(access.positions, topic, may_be_missing=True)) as reader:
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

    def place(self, partition: TopicPartition, offset: int) -> Place | None:
        """Return where a consumer of this source offset continues on the target, and how exact that is."""
        position = self._stored.of.get(partition)
        run = None if position is None else position.run
        if run is not None and run.first_upstream <= offset <= run.last_upstream + 1:
            return Place(offset + run.shift, 0)
        history = self._history(partition)
        return None if history is None else history.place(offset)

    def _known_to(self, partition: TopicPartition) -> int | None:
        """The offset after the last record whose target offset is known."""
        history, position = self._history(partition), self._stored.of.get(partition)
        known = [] if history is None else [history.syncs[0].upstream_offset]
        known += [position.run.last_upstream] if position is not None and position.run is not None else []
        return max(known) + 1 if known else None

    @staticmethod
    def _is_known(known_to: int | None, offset: int, is_searched: bool) -> bool:
        return known_to is not None and (offset <= known_to or is_searched)


def next_offset(position: Position | None, known_to: int | None) -> int | None:
    """The next source offset to be copied, by the position, and the offset after the newest offset sync.

    Positions of this mirror are never behind its syncs, and those of Java's are for up to a minute. A sync
    that is further may be about a topic that was created again since.
    """
    if position is None:  # Java's on a Connect cluster, perhaps
        return known_to
    if position.is_own or known_to is None:
        return position.offset + 1
    return max(position.offset + 1, known_to)


def existing_offsets(
    settings: ConsumerSettings, partitions: Collection[TopicPartition], which: int
) -> Mapping[TopicPartition, int | None]:
    """EARLIEST or LATEST offsets; None for a partition that does not exist. Raises KafkaError.

    A partition that has no leader at the moment does exist.
    """
    found: dict[TopicPartition, int | None] = {}
    for partition, offset in offsets_or_errors(settings, partitions, which).items():
        if isinstance(offset, SparkmirrorError):
            raise offset
        found[partition] = offset
    return found


def offsets_or_errors(
    settings: ConsumerSettings, partitions: Collection[TopicPartition], which: int
) -> Mapping[TopicPartition, int | SparkmirrorError | None]:
    """Return what `existing_offsets` does, and the error of each partition whose leader can't tell."""
    if not partitions:
        return {}
    metadata = read_metadata(settings.connection, {partition.topic for partition in partitions})
    there = [each for each in partitions if each.partition < metadata.partitions.get(each.topic, 0)]
    for topic in {partition.topic for partition in partitions} - set(metadata.partitions):
        code = metadata.errors.get(topic, UNKNOWN_TOPIC_OR_PARTITION)
        if code != UNKNOWN_TOPIC_OR_PARTITION:
            needed = Needed(settings.connection, (Need.DESCRIBE_TOPIC.of(topic),))
            raise error_for(code, topic, needed=needed)
    return {**dict.fromkeys(partitions), **list_offsets(settings, there, which, metadata)}


def with_records(
    settings: ConsumerSettings, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> Collection[TopicPartition]:
    """The partitions with a record to mirror from the first offset up to, not including, the second.

    Transaction markers, batches that compaction has emptied and, for `read_committed`, aborted records don't
    count. Offsets that are gone, or don't fit into one response, count as records. Raises KafkaError.
    """
    if not ranges:
        return ()
    offsets = {partition: begin for partition, (begin, _) in ranges.items()}
    with closing(PartitionReader(settings)) as reader:
        responses = {response.partition: response for response in reader.fetch(offsets, 0.0)}
    return {
        partition
        for partition, (begin, end) in ranges.items()
        if partition not in responses or _holds_records(responses[partition], begin, end, settings)
    }


def _holds_records(response: FetchedPartition, begin: int, end: int, settings: ConsumerSettings) -> bool:
    if response.error:
        return True
    aborted = AbortedTransactions(response.aborted)
    seen_to = begin
    for batch in iterate_batches(response.records):
        header = batch.header
        if header.base_offset >= end:
            return False
        is_dropped = aborted.drops(batch) and settings.read_committed
        is_nothing = header.attributes & CONTROL or header.record_count == 0 or is_dropped
        if header.last_offset >= begin and not is_nothing:
            return True
        seen_to = max(seen_to, header.last_offset + 1)
    return seen_to < end
