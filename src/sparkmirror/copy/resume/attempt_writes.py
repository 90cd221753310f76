"""Holds batches back whose ends can't be counted, until the ends are recorded with their attempt.

Batches that follow each other pass at once. Records are written in the background, one write at a time with
all that waits; what comes meanwhile goes with the next one.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Start
from sparkmirror.copy.partition_states import UNREACHABLE
from sparkmirror.copy.resume.claims import Claims
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.offsets.ends_ahead import EndsAhead
from sparkmirror.offsets.sequence_ends import SequenceEnd
from sparkmirror.storage.attempts import Acknowledged, Attempt, Stage, attempt_record

_log = logging.getLogger(__name__)

RENEWAL_S: Final = 6 * 3600.0
"""Attempts last no longer. A coordinator forgets an id that claims nothing for 7 days by default
(`transactional.id.expiration.ms`): the next attempt would get another producer id, which fences nothing."""


class Writer(Protocol):
    """What takes the batches; see `BatchWriter`."""

    def begin(self, partition: TopicPartition, state: ProducerState, topic_id: bytes) -> None: ...

    def append(self, partition: TopicPartition, batch: OutgoingBatch) -> None: ...

    def flush(self) -> None: ...


@dataclass(slots=True)
class _Writing:
    """An attempt that is written with. `is_due` says that `ends` must be recorded."""

    copy: PartitionCopy
    attempt: Attempt
    ends: EndsAhead
    is_due: bool = False
    is_moved: bool = False
    """Whether its record must be written with the next batch, whatever that is."""
    renewed_by: float = 0.0
    """By the loop's clock."""


class AttemptWrites:
    """On the loop's thread only. `run` runs a coroutine until the pipeline stops.

    Partitions without a recorded attempt pass through.
    """

    def __init__(
        self,
        claims: Claims | None,
        loop: asyncio.AbstractEventLoop,
        writer: Callable[[], Writer],
        run: Callable[[Coroutine[None, None, None]], object],
        failed: Callable[[TopicPartition, SparkmirrorError], None],
    ) -> None:
        """`failed` hears of partitions whose ends can't be recorded now."""
        self._claims = claims
        self._loop = loop
        self._writer = writer
        self._run = run
        self._failed = failed
        self._writings: dict[TopicPartition, _Writing] = {}
        self._log = None if claims is None else TopicWriter(claims.plan.state.connection)
        self._is_recording = False

    def begin(self, copy: PartitionCopy, start: Start) -> None:
        """Write under its attempt from now on; None: the one before goes on from where the copy is."""
        source, attempt = copy.plan.source, start.attempt
        copy.held.drop()
        if attempt is not None:
            copy.is_recorded = copy.is_settled = True
            copy.written, copy.last_entry = 0, start.marker
            renewed_by = self._loop.time() + RENEWAL_S * (1 - random.random() / 4)  # not all at once
            ends = EndsAhead(attempt.ends[0])
            self._writings[source] = _Writing(copy, attempt, ends, renewed_by=renewed_by)
        elif copy.is_recorded and copy.is_settled:
            self._go_on(copy)
        else:
            copy.is_recorded, copy.is_settled = False, True
            self._writings.pop(source, None)

    def _go_on(self, copy: PartitionCopy) -> None:
        """The logs may be others; in another target the attempt begins earlier."""
        self.dropped(copy)
        writing, state = self._writings[copy.plan.source], copy.producer
        before, logs = writing.attempt, copy.logs._replace(source_epoch=-1)
        begin = before.target_offset
        if state is not None and state.next_offset < begin:
            begin, copy.last_entry = state.next_offset, None
        writing.attempt = replace(before, target_offset=begin, logs=logs)
        writing.is_moved = writing.is_moved or writing.attempt != before

    def append(self, copy: PartitionCopy, batch: OutgoingBatch) -> None:
        """Hand the batch to the writer, now or when its end is recorded."""
        writing = self._writings.get(copy.plan.source)
        if writing is None:
            self._writer().append(copy.plan.target, batch)
            return
        if writing.ends.take(batch, copy.logs.source_epoch) or writing.is_moved:
            writing.is_due, writing.is_moved = True, False
        elif not copy.held:
            self._writer().append(copy.plan.target, batch)
            return
        copy.held.append(batch)
        if not self._is_recording:
            self._is_recording = True
            self._run(self._record())

    def old(self) -> Collection[PartitionCopy]:
        """The copies whose attempts another must follow."""
        now = self._loop.time()
        return [each.copy for each in self._writings.values() if each.renewed_by <= now]

    def distrust(self, copy: PartitionCopy) -> None:
        """Another attempt must follow soon, and fence this one too: the target may have lost its fence."""
        if writing := self._writings.get(copy.plan.source):
            copy.is_settled, writing.renewed_by = False, 0.0

    def dropped(self, copy: PartitionCopy) -> None:
        """The copy has gone back, or on: its next batch begins at its `fetch_position`."""
        copy.held.drop()
        if writing := self._writings.get(copy.plan.source):
            writing.ends.go_to(copy.taken, copy.fetch_position, copy.logs.source_epoch)

    async def _record(self) -> None:
        """Write what is due, until nothing is."""
        failures = 0
        try:
            while due := {at: each for at, each in self._writings.items() if each.copy.held}:
                waiting = [(each.copy, len(each.copy.held), each.copy.held.drops) for each in due.values()]
                try:
                    await self._write([at for at, writing in due.items() if writing.is_due])
                except SparkmirrorError as error:
                    failures += 1
                    for at in due:
                        self._failed(at, error)
                    await asyncio.sleep(UNREACHABLE.delay_s(failures, random.random()))
                    continue
                failures = 0
                for copy, count, drops in waiting:
                    if copy.held.drops == drops:
                        self._release(copy, count)
                self._writer().flush()
        finally:
            self._is_recording = False

    def _release(self, copy: PartitionCopy, count: int) -> None:
        writer, target = self._writer(), copy.plan.target
        for _ in range(count):
            writer.append(target, copy.held.release())

    async def _write(self, sources: Sequence[TopicPartition]) -> None:
        assert self._claims is not None
        records = []
        for source in sources:
            writing = self._writings[source]
            writing.is_due = False
            writing.ends.acknowledged(writing.copy.written)
            attempt = replace(writing.attempt, acknowledged=_acknowledged(writing.copy))
            records.append(self._attempt_record(source, attempt, writing.ends.encode()))
        if not records:
            return
        try:
            await self._send(records)
        except SparkmirrorError:
            for source in sources:
                if source in self._writings:
                    self._writings[source].is_due = True
            raise

    def _attempt_record(self, source: TopicPartition, attempt: Attempt, ends: str | None = None) -> LogRecord:
        assert self._claims is not None
        return attempt_record(self._claims.owner, source, attempt, ends)

    async def _send(self, records: Sequence[LogRecord]) -> None:
        assert self._claims is not None
        assert self._log is not None
        await self._loop.run_in_executor(None, self._log.write, self._claims.topic, records)

    async def close(self, copies: Iterable[PartitionCopy], unanswered: Collection[TopicPartition]) -> None:
        """Record that these attempts are over, except those with unanswered requests to target partitions.

        What can't be recorded is fenced by the next attempt. Nothing is sent any more.
        """
        records = []
        for copy in copies:
            writing, state = self._writings.get(copy.plan.source), copy.producer
            is_over = copy.is_settled and copy.plan.target not in unanswered
            if writing is None or state is None or not is_over:
                continue
            end = SequenceEnd(copy.written, copy.position, copy.logs.source_epoch)
            closed = replace(
                writing.attempt, stage=Stage.CLOSED, target_offset=state.next_offset, ends=(end,)
            )
            records.append(self._attempt_record(copy.plan.source, closed))
        try:
            if records:  # by a writer of its own: the other one may still be at work
                assert self._claims is not None
                await self._loop.run_in_executor(None, self._claims.write, records)
        except SparkmirrorError as error:
            _log.warning(
                "the end of %d attempts is not recorded, the next ones fence them: %s", len(records), error
            )
        if self._log is not None:
            self._log.close()


def _acknowledged(copy: PartitionCopy) -> Acknowledged | None:
    return None if copy.producer is None else Acknowledged(copy.written, copy.producer.next_offset)
