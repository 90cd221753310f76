"""Counts what one partition has taken and what is acknowledged of it, and keeps its position.

Touches no connection. `partition_states` decides what the partition does next.

Pure.
"""

import sys
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.batch_copying import CopyRules, copy_batches
from sparkmirror.batches.cycles import CycleFilter
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.batches.reencoding import Change
from sparkmirror.copy.copy_state import CopyState, is_undisturbed
from sparkmirror.copy.partition_events import Event, Instruction, ResumeReason, Start
from sparkmirror.copy.partition_states import step
from sparkmirror.copy.write_strategy import WriteStrategy
from sparkmirror.domain.errors import FencedError, SparkmirrorError, StandbyError
from sparkmirror.domain.ids import UNKNOWN_LOGS, TopicPartition
from sparkmirror.domain.incidents import Incident, IncidentKind, target_truncated
from sparkmirror.domain.latency import LatencyHistogram, bucket_of
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.positions import Position
from sparkmirror.storage.progress import PartitionState


class _Outstanding(NamedTuple):
    """A batch handed to the writer; `position` is set on the last batch that came from one source batch."""

    batch: OutgoingBatch
    position: int | None

    @property
    def next_offset(self) -> int:
        return self.batch.offsets[-1] + 1 if self.position is None else self.position


class Mark(NamedTuple):
    """Changes when there is something to report about a partition."""

    partition: TopicPartition
    records: int
    position: int
    end_offset: int | None
    state: PartitionState
    error: str | None
    notice: str | None


class PartitionCopy:
    """`position` is the next upstream offset to copy: what is before it is acknowledged or not to be copied.

    `fetch_position` is ahead of it by what is outstanding.
    """

    def __init__(
        self,
        plan: CopyPartition,
        rules: CopyRules,
        *,
        read_committed: bool,
        cycles: CycleFilter | None = None,
        change: Change | None = None,
    ) -> None:
        """`cycles` tells which batches come back from the target, None where that is not checked.

        `change` are the transforms, None without any.
        """
        self.plan = plan
        self.preserves_offsets = plan.preserves_offsets
        """Whether each record gets its source's offset: a mismatch ends that, with the next start."""
        self.log_start = self.same_end = 0
        """The start of the target's log, and the end of its source's offsets, if it keeps them."""
        self.position = self.fetch_position = 0
        self.begun_at: int | None = None
        """The offset where it has started; None before."""
        self.producer: ProducerState | None = None
        """The state at the last acknowledgement; None while the position is not this task's."""
        self.is_recorded = False
        """Whether the attempt is recorded, and fences those before it."""
        self.is_settled = True
        """Whether nothing that the attempt sent, and that was dropped since, may be unanswered."""
        self.is_distrusted = False
        """Whether the target may have lost the attempt's fence: another attempt must follow soon."""
        self.writes = WriteStrategy()
        self.written = 0
        """The number of the attempt's acknowledged records."""
        self.last_entry: int | None = None
        """The target offset of its last acknowledged record, or of its marker before, if it has either."""
        self.state = CopyState()
        self.is_undisturbed = False
        """Whether an acknowledgement is no event in this state: asked once a batch."""
        self.logs = UNKNOWN_LOGS
        self.outstanding_bytes = 0
        self.end_offset: int | None = None
        self.records = 0
        self.bytes = 0
        self.lost = 0
        self.notice: str | None = None
        self.incidents: Counter[IncidentKind] = Counter()
        self.cycles = cycles
        self.change = change
        self._rules = rules
        self._read_committed = read_committed
        self._outstanding: deque[_Outstanding] = deque()
        self._latency: dict[int, int] = {}

    def step(self, event: Event, now: float) -> Iterable[Instruction]:
        """Take an event. Return what must be done, in that order."""
        self.state, instructions = step(self.state, event, now)
        self.is_undisturbed = is_undisturbed(self.state)
        return instructions

    @property
    def continues(self) -> bool:
        """Whether its recorded attempt can continue: nothing that it sent is unanswered."""
        return self.is_recorded and self.is_settled

    def begin(self, start: Start, writes: WriteStrategy) -> None:
        """Start there, and write with this strategy. Nothing may be outstanding."""
        assert not self._outstanding
        if start.attempt is not None:
            self.is_recorded, self.written, self.last_entry = True, 0, start.marker
        elif start.claimed is not None or not self.continues:
            self.is_recorded = False
        if start.attempt is None and self._has_lost_last_entry(start):
            self.last_entry = None
        self.preserves_offsets = start.claimed is not None
        self.is_settled, self.is_distrusted = True, False
        self.position = self.fetch_position = self.begun_at = start.position
        self.producer, self.logs, self.writes = start.producer, start.logs, writes
        self.log_start, self.same_end = start.log_start, start.producer.next_offset
        if start.keeps_all:
            self.cycles = None
        for incident in start.incidents:
            self.note(incident)
        if start.incidents:
            self.notice = "; ".join(incident.text for incident in start.incidents)

    def _has_lost_last_entry(self, start: Start) -> bool:
        """Whether the target's log is another one, or ends before the last entry."""
        is_short = self.last_entry is not None and start.producer.next_offset <= self.last_entry
        return is_short or start.logs.target_id != self.logs.target_id

    def read(self, end_offset: int, leader_epoch: int) -> None:
        """Note what a Fetch has told of the source: where it ends, and the epoch of what was read."""
        self.end_offset = end_offset
        if leader_epoch != self.logs.source_epoch:
            self.logs = self.logs._replace(source_epoch=leader_epoch)

    def has_same_up_to(self, end: int) -> None:
        """Note that the target has the source's offsets up to there."""
        self.same_end = end

    def pass_gap(self, state: ProducerState) -> None:
        """Continue behind the control markers that have filled a gap."""
        self.producer, self.same_end = state, state.next_offset

    def distrust(self) -> None:
        """Note that the target may have lost the fence: an attempt that follows must fence this one, too."""
        self.is_settled, self.is_distrusted = False, True

    def forget_position(self) -> None:
        """Another task may continue the partition: nothing is stored of it any more."""
        self.producer = None

    def note(self, incident: Incident, *, repeats: bool = True) -> None:
        """Report an incident; unless it `repeats`, only if none of its kind was reported."""
        if not repeats and self.incidents[incident.kind]:
            return
        self.notice = incident.text
        self.incidents[incident.kind] += 1
        if incident.kind is IncidentKind.RECORDS_LOST:
            self.lost += incident.records

    def take(self, fetched: FetchedPartition, bytes_max: int = sys.maxsize) -> Iterator[OutgoingBatch]:
        """The batches to write, in order; the caller writes every one of them.

        None is taken behind so many bytes: that can be less than what was fetched, which may be compressed
        better. `fetch_position` is then on the first of the rest.

        Raises CorruptBatchError at the batch that can't be copied, UnknownWriterError at one that must wait,
        CycleError at one that must not be copied, ChangeFailedError at a record that can't be transformed,
        with `fetch_position` on it.
        """
        aborted = AbortedTransactions(fetched.aborted) if self._read_committed else None
        position, rules = self.fetch_position, self._rules
        steps = copy_batches(fetched.records, position, rules, aborted, self.cycles, self.change)
        full = self.outstanding_bytes + bytes_max
        while self.outstanding_bytes < full and (step := next(steps, None)) is not None:
            batches, position = step
            for number, batch in enumerate(batches, start=1):
                last = position if number == len(batches) else None
                self._outstanding.append(_Outstanding(batch, last))
                self.outstanding_bytes += len(batch.data)
                yield batch
            self.fetch_position = position
            if not batches:
                self._move_past(position)

    @property
    def looped(self) -> int:
        """The number of records left out because they came from the target."""
        return 0 if self.cycles is None else self.cycles.records

    @property
    def filtered(self) -> int:
        """The number of records left out by transforms."""
        return 0 if self.change is None else self.change.filtered

    def _move_past(self, position: int) -> None:
        """Move on to a position before which nothing is left, once outstanding batches have arrived."""
        if self._outstanding:
            self._outstanding[-1] = self._outstanding[-1]._replace(position=position)
        else:
            self.position = position

    def acknowledged(self, batch: OutgoingBatch, base_offset: int, now_ms: float, *, completes: bool) -> None:
        assert self.producer is not None
        expected = self.producer.next_offset
        if base_offset < expected:
            self.note(target_truncated(self.plan.target, base_offset, expected, batch.offsets[0]))
        self.producer = self.producer.after(len(batch.offsets), base_offset + len(batch.offsets))
        self.last_entry = self.producer.next_offset - 1
        self.written += len(batch.offsets)
        self.records += len(batch.offsets)
        self.bytes += len(batch.data)
        bucket = bucket_of(now_ms - batch.max_timestamp)
        self._latency[bucket] = self._latency.get(bucket, 0) + len(batch.offsets)
        # Also for a part of a source batch: were the next part refused, this one would be copied again.
        self.position = batch.offsets[-1] + 1
        if completes:
            done, position = self._outstanding.popleft()
            self.outstanding_bytes -= len(done.data)
            if position is not None:
                self.position = position

    def discard(self) -> None:
        """The writer dropped what is outstanding: go back to the first record that isn't acknowledged.

        What was sent of it may arrive all the same.
        """
        self._outstanding.clear()
        self.outstanding_bytes = 0
        self.fetch_position = self.position
        self.is_settled = False
        self.writes.went_back()

    def drop_unsent(self, drop: Callable[[TopicPartition], int]) -> int:
        """Go back to the first batch that was never sent. Return how many bytes that drops.

        `drop` lets the writer forget its unsent batches of the target partition, and returns their number.
        """
        before = self.outstanding_bytes
        count = self.writes.drop_held() + drop(self.plan.target)
        for _ in range(count):
            self.outstanding_bytes -= len(self._outstanding.pop().batch.data)
        if count:
            self.fetch_position = self._outstanding[-1].next_offset if self._outstanding else self.position
        self.writes.went_back()
        return before - self.outstanding_bytes

    def resume_reason(self, reason: ResumeReason) -> ResumeReason:
        """The reason with the position as it is now, if the partition has one. Nothing may be outstanding."""
        if self.producer is None:
            return reason
        position = self.known_position
        if reason.skipped is not None:
            position = position._replace(offset=reason.skipped.last)
        continues = position.producer is not None and not self.preserves_offsets
        return reason._replace(position=position, is_settled=self.is_settled and continues)

    @property
    def taken(self) -> int:
        """The number of the attempt's records that are acknowledged or outstanding."""
        outstanding = sum(len(each.batch.offsets) for each in self._outstanding)
        # Of a batch that the writer has split a part may be acknowledged.
        first = self._outstanding[0].batch.offsets if self._outstanding else ()
        return self.written + outstanding - bisect_left(first, self.position)

    @property
    def written_end(self) -> int:
        """The target's end when what is outstanding is written, if it has the source's offsets."""
        if self._outstanding:
            return self._outstanding[-1].batch.offsets[-1] + 1
        return self.position if self.producer is None else self.producer.next_offset

    @property
    def same_offsets(self) -> range | None:
        """The offsets that are the same on both sides, if they are preserved."""
        return range(self.log_start, self.same_end) if self.preserves_offsets else None

    @property
    def last_replicated(self) -> int | None:
        """MM2's position; None before the first record of a partition that starts at 0."""
        return self.position - 1 if self.position > 0 else None

    @property
    def stored_position(self) -> Position | None:
        """The position for the offsets topic; None before the first record, or while another task owns it."""
        return None if self.last_replicated is None or self.producer is None else self.known_position

    @property
    def known_position(self) -> Position:
        """The partition's position, with the sequence that follows if it has a producer id."""
        state = self.producer
        is_own = state is not None and state.producer != NOT_IDEMPOTENT
        is_translated = self.plan.preserves_offsets and not self.preserves_offsets
        return Position(self.position - 1, state if is_own else None, self.logs, is_translated=is_translated)

    @property
    def mark(self) -> Mark:
        error = None if self.error is None else str(self.error)  # each retry has another one that reads alike
        moved = self.plan.source, self.records, self.position, self.end_offset
        return Mark(*moved, self.reported_state, error, self.notice)

    def lag_from(self, position: int) -> int | None:
        """Count what the source has from there on, by offsets."""
        return None if self.end_offset is None else max(0, self.end_offset - position)

    @property
    def latency(self) -> LatencyHistogram:
        return LatencyHistogram(dict(self._latency))

    @property
    def error(self) -> SparkmirrorError | None:
        return self.state.error

    @property
    def reported_state(self) -> PartitionState:
        """A fenced partition is tried again, until a newer copy job or a promotion ends this one."""
        if self.error is None:
            return PartitionState.RUNNING
        if isinstance(self.error, StandbyError):
            return PartitionState.STANDBY
        is_retried = self.error.retriable or isinstance(self.error, FencedError)
        return PartitionState.RETRYING if is_retried else PartitionState.FAILED
