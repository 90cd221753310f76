"""Holds batches back whose ends can't be counted, until the ends are recorded with their attempt.

Batches that follow each other pass at once. Records are written in the background, one write at a time with
all that waits; what comes meanwhile goes with the next one.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Start, WriteFailed
from sparkmirror.copy.partition_states import UNREACHABLE
from sparkmirror.copy.partition_steps import Report
from sparkmirror.copy.resume.claims import RENEWAL_S, Claims
from sparkmirror.copy.write_strategy import Delivery, HeldBatches, NoteSync, WriteStrategy
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.offsets.ends_ahead import EndsAhead
from sparkmirror.offsets.sequence_ends import SequenceEnd
from sparkmirror.storage.attempts import Acknowledged, Attempt, Stage, attempt_record

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class AttemptWrites(WriteStrategy):
    """Writes a partition under a recorded attempt.

    `is_due` says that `ends` must be recorded, `is_moved` that the attempt's record must be written with the
    next batch, whatever that is. `renewed_by` is by the loop's clock.
    """

    copy: PartitionCopy
    attempt: Attempt
    delivery: Delivery
    note_sync: NoteSync
    record_soon: Callable[[], None]
    renewed_by: float
    ends: EndsAhead
    has_begun: bool = False
    is_due: bool = False
    is_moved: bool = False
    held: HeldBatches = field(default_factory=HeldBatches)

    @property
    def is_current(self) -> bool:
        """Whether the partition is written with this still."""
        return self.copy.writes is self

    @property
    def has_held(self) -> bool:
        return len(self.held) > 0

    def append(self, batch: OutgoingBatch) -> None:
        """Hand the batch to the writer, now or when its end is recorded."""
        if self.ends.take(batch, self.copy.logs.source_epoch) or self.is_moved:
            self.is_due, self.is_moved = True, False
        elif not self.held:
            self.delivery.writer.append(self.copy.plan.target, batch)
            return
        self.held.append(batch)
        self.record_soon()

    def acknowledged(self, batch: OutgoingBatch, base_offset: int) -> None:
        self.note_sync(self.copy.plan.source, batch, base_offset)

    def drop_held(self) -> int:
        return self.held.drop()

    def went_back(self) -> None:
        self.held.drop()
        self.ends.go_to(self.copy.taken, self.copy.fetch_position, self.copy.logs.source_epoch)

    def started(self) -> None:
        """Begin the attempt, or continue with it elsewhere: in another target log it begins earlier."""
        if not self.has_begun:
            self.has_begun = True
            return
        self.went_back()
        before, state = self.attempt, self.copy.producer
        begin = before.target_offset if state is None else min(before.target_offset, state.next_offset)
        logs = self.copy.logs._replace(source_epoch=-1)
        self.attempt = replace(before, target_offset=begin, logs=logs)
        self.is_moved = self.is_moved or self.attempt != before

    def release(self, count: int) -> None:
        """Hand the first of the batches that are held back to the writer."""
        writer, target = self.delivery.writer, self.copy.plan.target
        for _ in range(count):
            writer.append(target, self.held.release())

    def record(self) -> tuple[Attempt, str]:
        """The attempt and its encoded ends, for its record."""
        copy = self.copy
        self.ends.acknowledged(copy.written)
        acknowledged = (
            None if copy.producer is None else Acknowledged(copy.written, copy.producer.next_offset)
        )
        return replace(self.attempt, acknowledged=acknowledged), self.ends.encode()

    def closed(self) -> Attempt | None:
        """The attempt as it is when everything that it sent is acknowledged; None where that is not so."""
        copy = self.copy
        if copy.producer is None or not copy.is_settled:
            return None
        end = SequenceEnd(copy.written, copy.position, copy.logs.source_epoch)
        offset = copy.producer.next_offset
        return replace(self.attempt, stage=Stage.CLOSED, target_offset=offset, ends=(end,))


class AttemptRecorder:
    """Records the ends of a task's attempts. On the loop's thread only.

    `run` runs a coroutine until the task stops; `report` hears of what can't be recorded now. There are
    no attempts unless there are `claims`.
    """

    def __init__(
        self,
        claims: Claims | None,
        loop: asyncio.AbstractEventLoop,
        delivery: Delivery,
        run: Callable[[Coroutine[None, None, None]], object],
        report: Report,
        note_sync: NoteSync,
    ) -> None:
        self._claims = claims
        self._loop = loop
        self._delivery = delivery
        self._run = run
        self._report = report
        self._note_sync = note_sync
        self._writes: dict[TopicPartition, AttemptWrites] = {}
        self._log = None if claims is None else TopicWriter(claims.plan.state.connection)
        self._is_recording = False

    def writes(self, copy: PartitionCopy, start: Start) -> AttemptWrites:
        """The strategy of a partition that begins this attempt."""
        assert start.attempt is not None
        renewed_by = self._loop.time() + RENEWAL_S * (1 - random.random() / 4)  # not all at once
        made = self._writes[copy.plan.source] = AttemptWrites(
            copy,
            start.attempt,
            self._delivery,
            self._note_sync,
            self._record_soon,
            renewed_by,
            EndsAhead(start.attempt.ends[0]),
        )
        return made

    def old(self) -> Collection[PartitionCopy]:
        """The copies whose attempts another must follow."""
        now = self._loop.time()
        return [each.copy for each in self._current() if each.renewed_by <= now or each.copy.is_distrusted]

    def _current(self) -> Iterator[AttemptWrites]:
        return (each for each in self._writes.values() if each.is_current)

    def _record_soon(self) -> None:
        if not self._is_recording:
            self._is_recording = True
            self._run(self._record())

    async def _record(self) -> None:
        """Write what is due, until nothing is."""
        failures = 0
        try:
            while due := [each for each in self._current() if each.held]:
                waiting = [(each, len(each.held), each.held.drops) for each in due]
                try:
                    await self._write([each for each in due if each.is_due])
                except SparkmirrorError as error:
                    failures += 1
                    for each in due:
                        self._report(each.copy.plan.source, WriteFailed(error))
                    await asyncio.sleep(UNREACHABLE.delay_s(failures, random.random()))
                    continue
                failures = 0
                for each, count, drops in waiting:
                    if each.is_current and each.held.drops == drops:
                        each.release(count)
                self._delivery.writer.flush()
        finally:
            self._is_recording = False

    async def _write(self, due: Sequence[AttemptWrites]) -> None:
        if not due:
            return
        assert self._claims is not None
        assert self._log is not None
        owner, records = self._claims.owner, []
        for each in due:
            each.is_due = False
            records.append(attempt_record(owner, each.copy.plan.source, *each.record()))
        try:
            await self._loop.run_in_executor(None, self._log.write, self._claims.topic, records)
        except SparkmirrorError:
            for each in due:
                each.is_due = True
            raise

    async def close(self, unanswered: Collection[TopicPartition]) -> None:
        """Record that the attempts are over, except those with unanswered requests to target partitions.

        What can't be recorded is fenced by the next attempt. Nothing is sent any more.
        """
        if self._claims is None or self._log is None:
            return
        records = [
            attempt_record(self._claims.owner, each.copy.plan.source, closed)
            for each in self._current()
            if each.copy.plan.target not in unanswered and (closed := each.closed()) is not None
        ]
        try:
            if records:  # by a writer of its own: the other one may still be at work
                await self._loop.run_in_executor(None, self._claims.write, records)
        except SparkmirrorError as error:
            _log.warning(
                "the end of %d attempts is not recorded, the next ones fence them: %s", len(records), error
            )
        self._log.close()
