"""Reads back which of a partition's records the target already has, and finds them in the source.

A stored position is at most a second old; records written after it are in the target's log under the task's
producer id.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.batch_copying import CopyRules, Step, copy_batches
from sparkmirror.batches.cycles import UnknownWriterError
from sparkmirror.batches.matching import match
from sparkmirror.batches.producer import ProducerState
from sparkmirror.batches.record_batch import CONTROL, SEQUENCE_MODULUS, FetchedBatch, iterate_batches, writers
from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_events import Diverged
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import EARLIEST, require_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader


class Found(NamedTuple):
    """`position` is the next upstream offset to copy; `records` before it are on the target already.

    `is_whole` is set if all of them are in the source, and their sequences follow the state's.
    `source_epoch` is the leader epoch of the source's last batch that was read, -1 for none. `diverged` is
    set if the source has lost records that were copied; then nothing else counts.
    """

    position: int
    records: int
    is_whole: bool
    source_epoch: int
    diverged: Diverged | None = None


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Reads both logs. Blocks; `rules` are the partitions' copy rules."""

    source: ConsumerSettings
    target: ConsumerSettings
    rules: Mapping[TopicPartition, CopyRules]
    cycles: CycleDetection

    def find(self, plan: CopyPartition, first: int, read_epoch: int, state: ProducerState, end: int) -> Found:
        """Read the target from the state's offset to `end`, and the source from `first` on.

        The source's record before `first` was read in the leader epoch `read_epoch`, -1 if that is unknown.
        Raises KafkaError, AuthorizationError where the target may not be read.
        """
        with closing(PartitionReader(self.target)) as reader, closing(PartitionReader(self.source)) as ahead:
            tail = _Tail(reader, plan.target, state, end)
            rules = self.rules[plan.source]
            source = _Source(ahead, self.source, rules, plan.source, self.cycles, read_epoch)
            found = match(
                tail,
                source.steps(first),
                first,
                decompressed_bytes_max=rules.decompressed_bytes_max,
            )
            for _ in tail:
                pass  # records that the source lacks count all the same
        is_whole = found.is_whole and tail.is_contiguous
        return Found(found.position, tail.count, is_whole, source.leader_epoch, source.diverged)


class _Source:
    """Reads the source's records as they would be copied."""

    def __init__(
        self,
        reader: PartitionReader,
        settings: ConsumerSettings,
        rules: CopyRules,
        partition: TopicPartition,
        cycles: CycleDetection,
        read_epoch: int,
    ) -> None:
        self.leader_epoch = -1
        """Of the last batch that was read; those before it have the same or an older one."""
        self.diverged: Diverged | None = None
        self._read_epoch = read_epoch
        self._reader = reader
        self._settings = settings
        # Records are compared, not their batches' compression.
        self._rules = replace(rules, codec=None, merged_bytes_max=0)
        self._partition = partition
        self._cycles = cycles

    def steps(self, position: int) -> Iterator[Step]:
        """The steps from the position to the end of the log."""
        partition, committed = self._partition, self._settings.read_committed
        while True:
            read_epoch = max(self._read_epoch, self.leader_epoch)
            (fetched,) = self._reader.fetch({partition: position}, 0.0, read_epoch)
            if fetched.diverged_at is not None and fetched.diverged_at < position:
                self.diverged = Diverged(fetched.diverged_at, fetched.diverging_epoch)
                return
            if fetched.error:  # deleted by retention: later records may be on the target already
                start = require_offsets(self._settings, [partition], EARLIEST)[partition]
                if start <= position:
                    return
                position = start
                continue
            end = fetched.last_stable_offset if committed else fetched.high_watermark
            if position >= end:
                return
            self._note_epoch(fetched.records)
            aborted = AbortedTransactions(fetched.aborted) if committed else None
            cycles = self._cycles.filter_of_copies()
            try:
                for step in copy_batches(fetched.records, position, self._rules, aborted, cycles):
                    yield step
                    position = step.position
            except UnknownWriterError:
                self._cycles.look_up(writers(fetched.records))

    def _note_epoch(self, records: memoryview) -> None:
        with suppress(CorruptBatchError):  # reported when the batch is copied
            for batch in iterate_batches(records):
                self.leader_epoch = batch.header.leader_epoch


class _Tail:
    """The task's batches in the target from the state's offset to `end`. `count` is final after that."""

    def __init__(
        self, reader: PartitionReader, target: TopicPartition, state: ProducerState, end: int
    ) -> None:
        self.count = 0
        self.is_contiguous = True
        """Whether their sequences follow the state's without a gap."""
        self._batches = self._read(reader, target, state, end)

    def __iter__(self) -> Iterator[FetchedBatch]:
        return self._batches

    def _read(
        self, reader: PartitionReader, target: TopicPartition, state: ProducerState, end: int
    ) -> Iterator[FetchedBatch]:
        offset, sequence = state.next_offset, state.next_sequence
        while offset < end:
            (fetched,) = reader.fetch({target: offset}, 0.0)
            before = offset
            for batch in iterate_batches(fetched.records):
                header = batch.header
                if header.base_offset >= end:
                    return  # an older attempt still writes; the source is read only once
                if header.last_offset < offset:
                    continue
                offset = header.last_offset + 1
                if state.producer.wrote(header) and not header.attributes & CONTROL:
                    self.is_contiguous = self.is_contiguous and header.base_sequence == sequence
                    sequence = (header.base_sequence + header.record_count) % SEQUENCE_MODULUS
                    self.count += header.record_count
                    yield batch
            if offset == before:  # out of range: records that retention deleted can't be compared
                self.is_contiguous = False
                return
