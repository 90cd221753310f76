"""Stores a copy task's positions, offset syncs and progress in their topics.

Writes run in the background, one at a time; records that could not be written go with the next write. In
transactions `transaction_cycle` writes positions, and offset syncs wait until they are committed.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from math import inf

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import OffsetSyncPlan, TaskPlan
from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_copy import Mark, PartitionCopy
from sparkmirror.copy.partition_events import FetchFailed
from sparkmirror.copy.state_recorder import StateRecorder
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.offset_syncs import OffsetSyncQueue
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync
from sparkmirror.storage.positions import Position, position_record, read_positions
from sparkmirror.storage.progress import PartitionProgress, TaskLoad, TaskProgress

_log = logging.getLogger(__name__)

_STARTING = frozenset({Phase.RESOLVING, Phase.RETRYING})

_LOAD_INTERVAL_S = 10.0
"""The interval while nothing is copied; else a task's load is written with its partitions' progress."""

_SYNCS_TIMEOUT_S = 5.0

_SYNCS_KEPT = 4
"""The number of a partition's newest syncs that are kept while they can't be written."""


def contiguous_runs(batch: OutgoingBatch, base_offset: int) -> Iterator[Run]:
    """The acknowledged records as runs of consecutive offsets; one for every batch that was copied whole."""
    offsets = batch.offsets
    if batch.is_contiguous:
        yield Run(offsets[0], base_offset, len(offsets))
        return
    start = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
            yield Run(offsets[start], base_offset + start, at - start)
            start = at


def report_failure(plan: TaskPlan, error: str) -> None:
    """Report in the progress topic that none of a task's partitions is copied. Raises KafkaError."""
    copies = [PartitionCopy(partition, CopyRules(), read_committed=False) for partition in plan.partitions]
    for copy in copies:
        copy.step(FetchFailed(KafkaError(error)), 0.0)
    with closing(TopicWriter(plan.state.connection)) as writer:
        writer.write(plan.state.progress_topic, [_progress_of(copy, plan, 0).to_record() for copy in copies])


class StateWriter:
    """`note_sync` and `collect` belong to the copy loop's thread; what `collect` returns runs elsewhere."""

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan
        state = plan.state
        self._positions = StateRecorder("positions", state.connection, state.positions_topic)
        self._progress = StateRecorder("progress records", state.connection, state.progress_topic)
        self._syncs = _sync_recorder(plan.offset_syncs)
        self._uncommitted_runs: dict[TopicPartition, list[Run]] = {}
        self._sync_queue = OffsetSyncQueue(plan.offset_syncs.lag_max if plan.offset_syncs else 0)
        self._last_same: list[RunSync] = []
        self._unsent_syncs: dict[TopicPartition, list[RunSync]] = {}
        self._syncs_flushed_at = 0.0
        self._stored: dict[TopicPartition, Position] = {}
        self._reported: dict[TopicPartition, Mark] = {}
        self._load_at = -inf
        self._commit_ms: float | None = None
        """The duration of the last write of positions."""
        self._busy = threading.Lock()
        self._writing_positions = network_of(state.connection).lock()

    def read_positions(self) -> Mapping[TopicPartition, Position]:
        """The position of each of the task's partitions that has one. Raises KafkaError."""
        stored = self._read_positions([partition.source for partition in self._plan.partitions])
        self._stored.update(stored)
        return stored

    def forget_stored(self) -> None:
        """Let everything be written again."""
        self._stored = {}
        self._reported = {}

    def _read_positions(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Position]:
        plan = self._plan
        return read_positions(
            plan.state.connection, plan.state.positions_topic, plan.connector, plan.flow.source, partitions
        )

    def note_sync(self, source: TopicPartition, batch: OutgoingBatch, base_offset: int) -> None:
        if self._syncs is None:
            return
        for run in contiguous_runs(batch, base_offset):
            if self._plan.transaction is None:
                self._sync_queue.acknowledged(source, run)
            else:
                runs = self._uncommitted_runs.setdefault(source, [])
                continues = bool(runs) and runs[-1].continues_with(run)
                runs.append(runs.pop().and_then(run) if continues else run)

    def _note_same_offsets(self, copies: Iterable[PartitionCopy]) -> None:
        """Offsets that are preserved are one run, with all its gaps."""
        if self._syncs is None:
            return
        for copy in copies:
            same, source = copy.same_offsets, copy.plan.source
            if same is None:
                continue
            before = self._sync_queue.run_of(source)
            first = same.start if before is None else before.last_upstream + 1
            if first < same.stop:
                self._sync_queue.acknowledged(source, Run(first, first, same.stop - first))

    def end_same_offsets(self, copy: PartitionCopy) -> None:
        """The partition continues with other offsets: what is to be known of those before is written."""
        self._note_same_offsets([copy])
        source = copy.plan.source
        run = self._sync_queue.run_of(source)
        if run is not None:
            sync = OffsetSync(source, run.last_upstream, run.last_downstream)
            self._last_same.append(RunSync(sync, run.count))
        self._sync_queue.forget(source)

    def resume_after(self, partition: TopicPartition, run: Run | None) -> None:
        """Note that the partition resumes. The end of the run behind which it does, if known, is synced."""
        self._sync_queue.continue_from(partition, run)

    def collect(
        self, copies: Collection[PartitionCopy], now: float, load: TaskLoad | None = None
    ) -> Callable[[], None] | None:
        """A call that writes the changes since the last one, and may block; None while that is under way."""
        if not self._busy.acquire(blocking=False):
            return None
        self._note_same_offsets(copies)
        if (
            self._plan.offset_syncs
            and now - self._syncs_flushed_at >= self._plan.offset_syncs.flush_interval_s
        ):
            self._syncs_flushed_at = now
            self._sync_queue.flush_delayed()
        positions = self._positions_to_write(copies)
        progress = self._changed_progress(copies)
        syncs = self._due_syncs()
        is_due = load is not None and (bool(progress) or now - self._load_at >= _LOAD_INTERVAL_S)
        if is_due:
            self._load_at = now

        def write() -> None:
            try:
                self._write(positions, syncs, progress)
                if load is not None and is_due:
                    self._report_load(load)
            finally:
                self._busy.release()

        return write

    def close(self, copies: Collection[PartitionCopy]) -> None:
        """Write everything a last time, delayed syncs included. Blocks; no other call may be under way."""
        with self._busy:
            self._note_same_offsets(copies)
            self._sync_queue.flush_delayed()
            self._write(self._positions_to_write(copies), self._due_syncs(), self._changed_progress(copies))
            if not self._positions_to_write(copies):  # else the target can't be reached
                self._forget_overwritten(copies)
                self._write(self._positions_to_write(copies), (), {})
        for recorder in (self._positions, self._progress, self._syncs):
            if recorder is not None:
                recorder.close()

    def _forget_overwritten(self, copies: Collection[PartitionCopy]) -> None:
        """An attempt that was fenced, and woke late, may have stored its old position over a newer one."""
        epochs = {
            copy.plan.source: copy.producer.producer
            for copy in copies
            if copy.is_recorded and copy.producer is not None
        }
        if not epochs:
            return
        try:
            stored = self._read_positions(list(epochs))
        except SparkmirrorError as error:
            _log.info("stored positions are not checked: %s", error)
            return
        for source, position in stored.items():
            writer = None if position.producer is None else position.producer.producer
            if writer is not None and writer.id == epochs[source].id and writer.epoch < epochs[source].epoch:
                self._stored.pop(source, None)

    def store(self, records: Sequence[LogRecord]) -> None:
        """Store positions under new producer ids and epochs. Blocks. Raises KafkaError.

        A write under the former ones that is sent again and again ends before: it must not come later.
        """
        with self._writing_positions, closing(TopicWriter(self._plan.state.connection)) as writer:
            writer.write(self._plan.state.positions_topic, records)

    def _write(
        self,
        positions: Mapping[TopicPartition, Position],
        syncs: Iterable[RunSync],
        progress: Mapping[Mark, PartitionProgress],
    ) -> None:
        plan = self._plan
        records = [
            position_record(plan.connector, plan.flow.source, partition, position)
            for partition, position in positions.items()
        ]
        if records:
            began = time.monotonic()
            with self._writing_positions:
                are_stored = self._positions.write(records)
            if are_stored:
                self._commit_ms = (time.monotonic() - began) * 1000
                self._stored.update(positions)
        if progress and self._progress.write(report.to_record() for report in progress.values()):
            self._reported.update((report.source, mark) for mark, report in progress.items())
        self._write_syncs(syncs)

    def _report_load(self, load: TaskLoad) -> None:
        plan = self._plan
        measured = load._replace(commit_ms=self._commit_ms)
        lasting = [each.lasting for each in (self._positions, self._syncs) if each is not None]
        unwritten = {topic: why for each in lasting for topic, why in each.items()}
        report = TaskProgress(plan.connector, plan.task, plan.job_epoch, measured, time.time(), unwritten)
        self._progress.write([report.to_record()])

    def _write_syncs(self, syncs: Iterable[RunSync]) -> None:
        """Syncs that failed before go first, so that the newest sync of a partition is written last."""
        for due in syncs:
            # The start of a run and the newest sync are all a reader needs (see OffsetSyncQueue).
            self._unsent_syncs.setdefault(due.sync.topic_partition, []).append(due)
        records = [
            sync.to_record()
            for of_partition in self._unsent_syncs.values()
            for sync in of_partition[-_SYNCS_KEPT:]
        ]
        if records and self._syncs is not None and self._syncs.write(records):
            self._unsent_syncs.clear()
        for of_partition in self._unsent_syncs.values():
            del of_partition[:-_SYNCS_KEPT]

    def _due_syncs(self) -> list[RunSync]:
        last_same, self._last_same = self._last_same, []
        queue = self._sync_queue
        return [*last_same, *(RunSync(sync, queue.run_behind(sync)) for sync in queue.drain())]

    def moved_positions(self, copies: Iterable[PartitionCopy]) -> Mapping[TopicPartition, Position]:
        """The copies' positions that are not stored yet."""
        return {
            copy.plan.source: position
            for copy in copies
            if (position := self._position_of(copy)) and position != self._stored.get(copy.plan.source)
        }

    def _position_of(self, copy: PartitionCopy) -> Position | None:
        position, run = copy.stored_position, self._last_run(copy.plan.source)
        if position is None or run is None:
            return position
        if position.offset < run.first_upstream:
            return position
        # Where offsets are preserved, the run ends with the markers that fill the gap behind.
        return position._replace(run=run.until(min(position.offset, run.last_upstream)))

    def _last_run(self, source: TopicPartition) -> Run | None:
        """The newest run; in transactions the position is committed together with it."""
        uncommitted = self._uncommitted_runs.get(source)
        return uncommitted[-1] if uncommitted else self._sync_queue.run_of(source)

    def committed(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Note the commit of these positions, and of all syncs noted before."""
        self._stored.update(positions)
        for source, runs in self._uncommitted_runs.items():
            for run in runs:
                self._sync_queue.acknowledged(source, run)
        self._uncommitted_runs.clear()

    def aborted(self) -> None:
        """Discard the syncs noted since the last commit."""
        self._uncommitted_runs.clear()

    def _positions_to_write(self, copies: Iterable[PartitionCopy]) -> Mapping[TopicPartition, Position]:
        """The moved positions, without those whose start is looked up: that may end in `store`."""
        if self._plan.transaction is not None:
            return {}
        return self.moved_positions(copy for copy in copies if copy.state.phase not in _STARTING)

    def _changed_progress(self, copies: Iterable[PartitionCopy]) -> Mapping[Mark, PartitionProgress]:
        # Most partitions are idle most of the time: only those that moved cost a report.
        return {
            mark: _progress_of(copy, self._plan, mark.position)
            for copy in copies
            if (mark := self._mark(copy)) != self._reported.get(copy.plan.source)
        }

    def _mark(self, copy: PartitionCopy) -> Mark:
        """The copy's mark; in transactions its position is the committed one."""
        if self._plan.transaction is None:
            return copy.mark
        return copy.mark._replace(position=self._committed(copy))

    def _committed(self, copy: PartitionCopy) -> int:
        """The next upstream offset behind what is committed."""
        stored, begun_at = self._stored.get(copy.plan.source), copy.begun_at
        committed = 0 if stored is None else stored.offset + 1
        # Another topic may have had the stored position, or retention may have overtaken it.
        return committed if begun_at is None or begun_at <= committed <= copy.position else begun_at


def _progress_of(copy: PartitionCopy, plan: TaskPlan, position: int) -> PartitionProgress:
    """`position` is the next upstream offset to copy."""
    return PartitionProgress(
        connector=plan.connector,
        task=plan.task,
        job_epoch=plan.job_epoch,
        attempt=plan.attempt,
        source=copy.plan.source,
        target_topic=copy.plan.target_topic,
        records=copy.records,
        bytes=copy.bytes,
        position=position - 1 if position > 0 else None,
        lag=copy.lag_from(position),
        latency=copy.latency,
        state=copy.reported_state,
        error=None if copy.error is None else str(copy.error),
        updated_at=time.time(),
        lost=copy.lost,
        looped=copy.looped,
        filtered=copy.filtered,
        notice=copy.notice,
        incidents={kind.value: count for kind, count in copy.incidents.items()},
    )


def _sync_recorder(plan: OffsetSyncPlan | None) -> StateRecorder | None:
    return (
        None if plan is None else StateRecorder("offset syncs", plan.connection, plan.topic, _SYNCS_TIMEOUT_S)
    )
