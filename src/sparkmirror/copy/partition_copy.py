"""The state of one partition while it's copied: what was taken, what is acknowledged, what went wrong.

Touches no connection; the copy loop acts on what it says.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.batch_copying import CopyRules, copy_batches
from sparkmirror.batches.cycles import CycleFilter
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import UNKNOWN_LOGS, LogIdentity, TopicPartition
from sparkmirror.domain.incidents import Incident, IncidentKind
from sparkmirror.domain.latency import LatencyHistogram, bucket_of
from sparkmirror.kafka.fetch import FetchedPartition
from sparkmirror.storage.positions import Position
from sparkmirror.storage.progress import PartitionState


class _Outstanding(NamedTuple):
    """A batch handed to the writer; `position` is set on the last batch that came from one source batch."""

    batch_bytes: int
    position: int | None


class Mark(NamedTuple):
    """What changes when there is something to report about a partition."""

    partition: TopicPartition
    records: int
    position: int
    end_offset: int | None
    error: SparkmirrorError | None
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
        loops: CycleFilter | None = None,
    ) -> None:
        """`loops` says which batches come back from the target, None where that is not looked at."""
        self.plan = plan
        self.position = self.fetch_position = 0
        self.producer: ProducerState | None = None
        """As of the last acknowledgement; None until the partition has begun."""
        self.logs = UNKNOWN_LOGS
        self.outstanding_bytes = 0
        self.paused = False
        self.end_offset: int | None = None
        self.records = 0
        self.bytes = 0
        self.failures = 0
        self.lost = 0
        self.notice: str | None = None
        self.incidents: Counter[IncidentKind] = Counter()
        self.fetch_error: SparkmirrorError | None = None
        self.write_error: SparkmirrorError | None = None
        self.loops = loops
        self._rules = rules
        self._read_committed = read_committed
        self._outstanding: deque[_Outstanding] = deque()
        self._latency: dict[int, int] = {}

    def begin(self, position: int, producer: ProducerState, logs: LogIdentity = UNKNOWN_LOGS) -> None:
        """Nothing may be outstanding."""
        assert not self._outstanding
        self.position = self.fetch_position = position
        self.producer = producer
        self.logs = logs
        self.fetch_error = self.write_error = None

    def note(self, incident: Incident) -> None:
        """Something that people should know of although the partition runs."""
        self.notice = incident.text
        self.incidents[incident.kind] += 1
        if incident.kind is IncidentKind.RECORDS_LOST:
            self.lost += incident.records

    def take(self, fetched: FetchedPartition) -> Iterator[OutgoingBatch]:
        """The batches to write, in order; the caller writes every one of them.

        Raises CorruptBatchError at the batch that can't be copied, UnknownWriterError at one that must wait,
        CycleError at one that must not be copied, with `fetch_position` on it.
        """
        aborted = AbortedTransactions(fetched.aborted) if self._read_committed else None
        steps = copy_batches(fetched.records, self.fetch_position, self._rules, aborted, self.loops)
        for batches, position in steps:
            for number, batch in enumerate(batches, start=1):
                last = position if number == len(batches) else None
                self._outstanding.append(_Outstanding(len(batch.data), last))
                self.outstanding_bytes += len(batch.data)
                yield batch
            self.fetch_position = position
            if not batches:
                self._move_past(position)

    @property
    def looped(self) -> int:
        """So many records were left out because they came from the target."""
        return 0 if self.loops is None else self.loops.records

    def _move_past(self, position: int) -> None:
        """Nothing to copy up to here: move on now, or once what is outstanding before it has arrived."""
        if self._outstanding:
            self._outstanding[-1] = self._outstanding[-1]._replace(position=position)
        else:
            self.position = position

    def acknowledged(self, batch: OutgoingBatch, base_offset: int, now_ms: float, *, completes: bool) -> None:
        assert self.producer is not None
        self.producer = self.producer.after(len(batch.offsets), base_offset + len(batch.offsets))
        self.records += len(batch.offsets)
        self.bytes += len(batch.data)
        self.write_error = None
        self.failures = 0
        bucket = bucket_of(now_ms - batch.max_timestamp)
        self._latency[bucket] = self._latency.get(bucket, 0) + len(batch.offsets)
        # Also for a part of a source batch: were the next part refused, this one would be copied again.
        self.position = batch.offsets[-1] + 1
        if completes:
            size, position = self._outstanding.popleft()
            self.outstanding_bytes -= size
            if position is not None:
                self.position = position

    def discard(self) -> None:
        """The writer dropped what is outstanding: go back to the first record that isn't acknowledged."""
        self._outstanding.clear()
        self.outstanding_bytes = 0
        self.fetch_position = self.position

    @property
    def last_replicated(self) -> int | None:
        """MM2's position; None before the first record of a partition that starts at 0."""
        return self.position - 1 if self.position > 0 else None

    @property
    def stored_position(self) -> Position | None:
        """What to write to the offsets topic; None while there is nothing to say."""
        return None if self.last_replicated is None or self.producer is None else self.known_position

    @property
    def known_position(self) -> Position:
        """Where the partition is, and how its numbers go on if they are its own."""
        state = self.producer
        is_own = state is not None and state.producer != NOT_IDEMPOTENT
        return Position(self.position - 1, state if is_own else None, self.logs)

    @property
    def mark(self) -> Mark:
        return Mark(self.plan.source, self.records, self.position, self.end_offset, self.error, self.notice)

    @property
    def lag(self) -> int | None:
        return None if self.end_offset is None else max(0, self.end_offset - self.position)

    @property
    def latency(self) -> LatencyHistogram:
        return LatencyHistogram(dict(self._latency))

    @property
    def error(self) -> SparkmirrorError | None:
        return self.write_error or self.fetch_error

    @property
    def state(self) -> PartitionState:
        if self.error is None:
            return PartitionState.RUNNING
        return PartitionState.RETRYING if self.error.retriable else PartitionState.FAILED
