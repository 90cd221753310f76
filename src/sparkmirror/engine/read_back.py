"""Reads back what of a partition's records the target already has, and finds it in the source.

A stored position is at most a second old; what was written after it stands in the target's log under our
producer id.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkmirror.domain.aborted_transactions import AbortedTransactions
from sparkmirror.domain.batch_copying import CopyRules, Step, copy_batches
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.copy_plan import CopyPartition
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.matching import Match, match
from sparkmirror.domain.producer_state import ProducerState
from sparkmirror.domain.record_batch import SEQUENCE_MODULUS, FetchedBatch, iterate_batches
from sparkmirror.kafka.offsets import EARLIEST, require_offsets
from sparkmirror.kafka.partition_reader import PartitionReader


class Found(NamedTuple):
    """`position` is the next upstream offset to copy; so many `records` before it are on the target already.

    `is_whole` says that every one of them is in the source, and that their sequences follow the state's.
    """

    position: int
    records: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Blocks; `rules` are those that the partitions are copied by."""

    source: ConsumerSettings
    target: ConsumerSettings
    rules: Mapping[TopicPartition, CopyRules]

    def find(self, plan: CopyPartition, first: int, state: ProducerState, end: int) -> Found:
        """Look at the target from the state's offset to `end`, and at the source from `first` on.

        Raises KafkaError, AuthorizationError where the target may not be read.
        """
        with closing(PartitionReader(self.target)) as reader:
            tail = _Tail(reader, plan.target, state, end)
            found = self._match(plan, tail, first)
            for _ in tail:
                pass  # what the source does not have counts all the same
        return Found(found.position, tail.count, found.is_whole and tail.is_contiguous)

    def _match(self, plan: CopyPartition, tail: Iterable[FetchedBatch], first: int) -> Match:
        with closing(PartitionReader(self.source)) as reader:
            steps = self._steps(reader, plan.source, first)
            return match(tail, steps, first, timestamps=not plan.target_stamps_append_time)

    def _steps(self, reader: PartitionReader, source: TopicPartition, position: int) -> Iterator[Step]:
        """What the source holds from the position on, as it would be copied."""
        committed = self.source.read_committed
        # What is compared is what is inside.
        rules = replace(self.rules[source], codec=None, merged_bytes_max=0)
        while True:
            (fetched,) = reader.fetch({source: position}, 0.0)
            if fetched.error:  # retention was here: what is left may be there already all the same
                start = require_offsets(self.source, [source], EARLIEST)[source]
                if start <= position:
                    return
                position = start
                continue
            end = fetched.last_stable_offset if committed else fetched.high_watermark
            if position >= end:
                return
            aborted = AbortedTransactions(fetched.aborted) if committed else None
            for step in copy_batches(fetched.records, position, rules, aborted):
                yield step
                position = step.position


class _Tail:
    """Our batches in the target from the state's offset to `end`. Iterates once; then `count` is complete."""

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
                    return  # an attempt that still lives writes on; what the source had is read only once
                if header.last_offset < offset:
                    continue
                offset = header.last_offset + 1
                if state.producer.wrote(header):
                    self.is_contiguous = self.is_contiguous and header.base_sequence == sequence
                    sequence = (header.base_sequence + header.record_count) % SEQUENCE_MODULUS
                    self.count += header.record_count
                    yield batch
            if offset == before:  # out of range: retention was here, and what is gone can't be compared
                self.is_contiguous = False
                return
