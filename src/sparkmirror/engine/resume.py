"""Where a task takes its partitions up: exactly after what the target already has, whoever wrote it.

A position is at most a second old, and what was written after it stands in the target's log under our
producer id: read it back, find it in the source, and go on behind it under the numbers that follow. An
attempt that still lives writes the same records under the same numbers, and a broker keeps one copy.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkmirror.domain.aborted_transactions import AbortedTransactions
from sparkmirror.domain.batch_copying import CopyRules, Step, copy_batches
from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
from sparkmirror.domain.copy_plan import CopyPartition, TaskPlan
from sparkmirror.domain.errors import AuthorizationError, KafkaError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import DataLoss, OnDataLoss
from sparkmirror.domain.matching import Match, match
from sparkmirror.domain.producer_state import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.domain.record_batch import SEQUENCE_MODULUS, FetchedBatch, iterate_batches
from sparkmirror.kafka.offsets import EARLIEST, LATEST, list_offsets, require_offsets
from sparkmirror.kafka.partition_reader import PartitionReader
from sparkmirror.kafka.producer_ids import new_producer_id
from sparkmirror.kafka.topic_log import TopicWriter
from sparkmirror.storage.positions import Position, position_record

_log = logging.getLogger(__name__)

_UNEXPLAINED = "the broker refused a sequence, and nothing in the log explains why; looking again"


class Start(NamedTuple):
    """`position` is the next upstream offset to copy; `notice` is what people should know of it."""

    position: int
    producer: ProducerState
    notice: str | None = None
    lost: int = 0


class _UnderNewId(NamedTuple):
    """A start whose numbers begin anew, at the target's offset `next_offset`."""

    position: int
    next_offset: int
    notice: str | None = None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Resumption:
    """Finds the starts of some partitions of a plan. Blocks; `rules` are those that they are copied by."""

    plan: TaskPlan
    rules: Mapping[TopicPartition, CopyRules]

    def starts(
        self,
        known: Mapping[TopicPartition, Position | None],
        distrusted: Collection[TopicPartition] = (),
        gone: Mapping[TopicPartition, int] | None = None,
        *,
        is_last_try: bool = False,
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """The start of each partition, or why it can't begin now.

        `known` is what is known of each; None lets `auto.offset.reset` decide. A broker has refused the
        numbers of `distrusted` ones, so something must explain that, if not now (what it has may wait for its
        followers), then before the last try. `gone` holds the next offset to copy where the source has that
        no more. Where numbers begin anew, that is stored and acknowledged before this returns. Raises
        KafkaError when none can begin.
        """
        plans = [plan for plan in self.plan.partitions if plan.source in known]
        ends = list_offsets(self._target, [plan.target for plan in plans], LATEST)
        first_offsets = self._first_offsets(
            [source for source, position in known.items() if position is None]
        )
        found: dict[TopicPartition, Start | _UnderNewId | SparkmirrorError] = {}
        for plan in plans:
            position, end = known[plan.source], ends[plan.target]
            first = first_offsets[plan.source] if position is None else position.offset + 1
            if isinstance(end, SparkmirrorError):
                found[plan.source] = end
            elif isinstance(first, SparkmirrorError):
                found[plan.source] = first
            elif gone and plan.source in gone:
                found[plan.source] = self._without(plan, DataLoss(gone[plan.source], first), end)
            elif position is None or position.producer is None or not self.plan.producer.idempotent:
                found[plan.source] = _UnderNewId(first, end)
            else:
                found[plan.source] = self._continued(plan, first, position.producer, end)
                unchanged = Start(first, position.producer)
                if plan.source in distrusted and found[plan.source] == unchanged:
                    unexplained = RetriableError(f"{plan.target}: {_UNEXPLAINED}")
                    found[plan.source] = _renumbered(unchanged) if is_last_try else unexplained
        starts = self._with_ids(found)
        self._store(starts, known)
        return starts

    def _without(self, plan: CopyPartition, loss: DataLoss, end: int) -> _UnderNewId | SparkmirrorError:
        """Go on behind a gap, if that is allowed: with it changes what a number means."""
        if self.plan.reactions.on_data_loss is OnDataLoss.FAIL:
            return KafkaError(
                f"{plan.source}: {loss}, if it may: on.data.loss is fail. Set it to record, or reset the "
                "offset"
            )
        _log.warning("%s: %s", plan.source, loss)
        return _UnderNewId(loss.start, end, str(loss), loss.records)

    def _continued(
        self, plan: CopyPartition, first: int, state: ProducerState, end: int
    ) -> Start | _UnderNewId | SparkmirrorError:
        try:
            start, is_proven = self._go_on(plan, first, state, end)
        except AuthorizationError as error:
            notice = f"{error}; records behind the stored position may come twice"
            start, is_proven = Start(first, state._replace(next_offset=end), notice), False
        except SparkmirrorError as error:
            return error
        return start if is_proven else _renumbered(start)

    def _with_ids(
        self, found: Mapping[TopicPartition, Start | _UnderNewId | SparkmirrorError]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """A new id is asked for only if somebody needs one; partitions that begin together may share it."""
        producer = NOT_IDEMPOTENT
        if any(isinstance(start, _UnderNewId) for start in found.values()):
            producer = self._new_producer()
        return {
            source: Start(
                start.position, ProducerState(producer, 0, start.next_offset), start.notice, start.lost
            )
            if isinstance(start, _UnderNewId)
            else start
            for source, start in found.items()
        }

    @property
    def _target(self) -> ConsumerSettings:
        return ConsumerSettings(self.plan.producer.connection)

    def _first_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        """Where `auto.offset.reset` lets partitions without a position begin."""
        policy = self.plan.consumer.offset_reset
        if policy is OffsetReset.NONE:
            return {
                partition: KafkaError(f"{partition} has no valid position and auto.offset.reset is none")
                for partition in partitions
            }
        which = EARLIEST if policy is OffsetReset.EARLIEST else LATEST
        return list_offsets(self.plan.consumer, partitions, which)

    def _new_producer(self) -> ProducerId:
        if not self.plan.producer.idempotent:
            return NOT_IDEMPOTENT
        try:
            return new_producer_id(self.plan.producer.connection)
        except AuthorizationError as error:
            _log.warning("%s; writing at least once", error)
            return NOT_IDEMPOTENT

    # reading back

    def _go_on(self, plan: CopyPartition, first: int, state: ProducerState, end: int) -> tuple[Start, bool]:
        """Where to go on, and whether the numbers up to there mean what they should."""
        if end < state.next_offset:
            notice = (
                f"{plan.target} ends at {end}, but was acknowledged up to {state.next_offset}: the target "
                f"lost {state.next_offset - end} records, or was made anew; going on from offset {first} of "
                "the source"
            )
            return Start(first, state._replace(next_offset=end), notice), False
        if end == state.next_offset:
            return Start(first, state), True
        with closing(PartitionReader(self._target)) as reader:
            tail = _Tail(reader, plan.target, state, end)
            found = self._match(plan, tail, first)
            for _ in tail:
                pass  # what the source does not have counts all the same
        if tail.count:
            _log.info(
                "%s: %d records behind the stored position are there already; going on from offset %d",
                plan.target,
                tail.count,
                found.position,
            )
        if found.is_whole and tail.is_contiguous:
            return Start(found.position, state.after(tail.count, end)), True
        notice = (
            f"of {tail.count} records behind the stored position not all are in the source any more; "
            f"going on behind the last one that is, offset {found.position}"
        )
        return Start(found.position, state.after(tail.count, end), notice), False

    def _match(self, plan: CopyPartition, tail: Iterable[FetchedBatch], first: int) -> Match:
        with closing(PartitionReader(self.plan.consumer)) as reader:
            steps = self._steps(reader, plan.source, first)
            return match(tail, steps, first, timestamps=not plan.target_stamps_append_time)

    def _steps(self, reader: PartitionReader, source: TopicPartition, position: int) -> Iterator[Step]:
        """What the source holds from the position on, as it would be copied."""
        committed = self.plan.consumer.read_committed
        # What is compared is what is inside.
        rules = replace(self.rules[source], codec=None, merged_bytes_max=0)
        while True:
            (fetched,) = reader.fetch({source: position}, 0.0)
            if fetched.error:  # retention was here: what is left may be there already all the same
                start = require_offsets(self.plan.consumer, [source], EARLIEST)[source]
                if start <= position:
                    return
                position = start
                continue
            end = fetched.last_stable_offset if committed else fetched.high_watermark
            if position >= end:
                return
            aborted = AbortedTransactions(fetched.aborted) if committed else None
            for step in copy_batches(iterate_batches(fetched.records), position, rules, aborted):
                yield step
                position = step.position

    def _store(
        self,
        results: Mapping[TopicPartition, Start | SparkmirrorError],
        known: Mapping[TopicPartition, Position | None],
    ) -> None:
        """Before the first batch under new numbers, whoever comes next must know of them."""
        plan = self.plan
        records = [
            position_record(
                plan.connector, plan.flow.source, source, Position(start.position - 1, start.producer)
            )
            for source, start in results.items()
            if isinstance(start, Start) and _is_renumbered(start, known[source])
        ]
        if not records:
            return
        with closing(TopicWriter(plan.state.connection)) as writer:
            writer.write(plan.state.positions_topic, records)


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


def _renumbered(start: Start) -> Start | _UnderNewId:
    state = start.producer
    if state.producer.is_last:
        return _UnderNewId(start.position, state.next_offset, start.notice)
    return Start(start.position, state.in_next_epoch(state.next_offset), start.notice)


def _is_renumbered(start: Start, known: Position | None) -> bool:
    before = None if known is None or known.producer is None else known.producer.producer
    return start.producer.producer not in (before, NOT_IDEMPOTENT)
