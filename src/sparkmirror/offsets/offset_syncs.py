"""Decides which pairs of source and target offsets become offset syncs, and which of them wait.

`OffsetSyncState` is the rule of Java's OffsetSyncWriter.PartitionState, for one record at a time and, in
constant time, for a batch. `OffsetSyncQueue` holds the syncs to write; it writes nothing.
"""

from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.wire_records import OffsetSync

_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The ends of a run that need a sync now. A last record that needs none waits for the next flush."""

    sync_first: bool
    sync_last: bool


class OffsetSyncState:
    """Decides about the syncs of one source partition during one run of its task."""

    __slots__ = ("_last_sync_downstream", "_offset_lag_max", "_previous", "_should_sync")

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = max(offset_lag_max, 0)
        self._previous = (_NONE, _NONE)
        self._last_sync_downstream = _NONE
        self._should_sync = False

    def update(self, upstream: int, downstream: int) -> bool:
        """Take one acknowledged record. True, until `reset`, once a sync is due.

        Due is a sync for the first record, after a gap or step back in the source, after the target lost
        records, and when a translation would be `offset.lag.max` records behind.
        """
        if self._starts_run(upstream, downstream) or self._is_stale(downstream):
            self._last_sync_downstream = downstream
            self._should_sync = True
        self._previous = (upstream, downstream)
        return self._should_sync

    def reset(self) -> None:
        """The due sync has been queued."""
        self._should_sync = False

    def update_run(self, run: Run) -> RunVerdict:
        """Take a run as if each of its records had gone through `update`, each with a `reset`.

        The state afterwards is the same. A sync that the rule wants inside the run is due at its last record
        instead, which is as exact and newer.
        """
        starts_run = self._starts_run(run.first_upstream, run.first_downstream)
        starts_stale = not starts_run and self._is_stale(run.first_downstream)
        if starts_run or starts_stale:
            self._last_sync_downstream = run.first_downstream
        step = self._offset_lag_max + 1
        steps = (run.last_downstream - self._last_sync_downstream) // step
        self._last_sync_downstream += steps * step
        self._previous = (run.last_upstream, run.last_downstream)
        return RunVerdict(sync_first=starts_run, sync_last=starts_stale or steps > 0)

    def _starts_run(self, upstream: int, downstream: int) -> bool:
        previous_upstream, previous_downstream = self._previous
        return (
            self._last_sync_downstream == _NONE
            or upstream - previous_upstream != 1
            or downstream < previous_downstream
        )

    # The reader translates to one record past the sync, hence the 1.
    def _is_stale(self, downstream: int) -> bool:
        return downstream - (self._last_sync_downstream + 1) >= self._offset_lag_max


@dataclass(frozen=True, slots=True)
class _Pending:
    oldest: OffsetSync | None
    run_start: OffsetSync | None
    newest: OffsetSync | None

    @property
    def earliest(self) -> OffsetSync | None:
        return self.oldest or self.run_start or self.newest


class OffsetSyncQueue:
    """The syncs of many partitions that are to be written now or at the next flush.

    Per partition the newest sync replaces an older one, as in Java, except that the start of the newest run
    stays with it: a reader that lacked it would translate the offsets inside the run to before the run. So
    does the first one since the last writing: what is older than every sync can't be translated at all, and
    much is copied before the first writing. So at most three syncs and one delayed one are held for each
    partition, and partitions keep the order of arrival.
    """

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._states: dict[TopicPartition, OffsetSyncState] = {}
        self._pending: dict[TopicPartition, _Pending] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}
        self._runs: dict[TopicPartition, Run] = {}

    def continue_from(self, source: TopicPartition, run: Run | None) -> None:
        """Set the run of the task's last attempt, which the next batch may continue; None drops it.

        The run's end is synced: the attempt may have ended before that.
        """
        self._runs.pop(source, None)
        if run is not None:
            self._runs[source] = run
            self._queue_newest(OffsetSync(source, run.last_upstream, run.last_downstream))

    def run_of(self, source: TopicPartition) -> Run | None:
        """The newest run, whole."""
        return self._runs.get(source)

    def run_behind(self, sync: OffsetSync) -> int:
        """The count of records, back from the sync's own, that have the same difference of offsets."""
        run = self._runs.get(sync.topic_partition)
        return 1 if run is None else run.up_to(sync.upstream_offset, sync.downstream_offset)

    def acknowledged(self, source: TopicPartition, run: Run) -> None:
        """Take an acknowledged run; costs the same however long it is."""
        before = self._runs.get(source)
        self._runs[source] = before.and_then(run) if before and before.continues_with(run) else run
        state = self._states.get(source)
        if state is None:
            state = self._states[source] = OffsetSyncState(self._offset_lag_max)
        verdict = state.update_run(run)
        if verdict.sync_first:
            self._delayed.pop(source, None)
            first = OffsetSync(source, run.first_upstream, run.first_downstream)
            waiting = self._pending.get(source)
            self._pending[source] = _Pending(waiting.earliest if waiting else None, first, None)
        if verdict.sync_first and run.count == 1:
            return
        last = OffsetSync(source, run.last_upstream, run.last_downstream)
        if verdict.sync_last:
            self._queue_newest(last)
        else:
            self._delayed[source] = last

    def flush_delayed(self) -> None:
        """Let the waiting syncs be written too, so that an idle partition is exact (KAFKA-15906)."""
        for sync in list(self._delayed.values()):
            self._queue_newest(sync)

    def drain(self) -> list[OffsetSync]:
        """Take out the syncs to write, in the order in which they must be written."""
        drained = [
            sync
            for entry in self._pending.values()
            for sync in (entry.oldest, entry.run_start, entry.newest)
            if sync
        ]
        self._pending.clear()
        return drained

    def forget(self, source: TopicPartition) -> None:
        """Drop a partition that is copied here no more; its next record counts as the first."""
        for held in (self._states, self._pending, self._delayed, self._runs):
            held.pop(source, None)

    def _queue_newest(self, sync: OffsetSync) -> None:
        source = sync.topic_partition
        self._delayed.pop(source, None)
        pending = self._pending.get(source)
        oldest, run_start = (pending.oldest, pending.run_start) if pending else (None, None)
        self._pending[source] = _Pending(oldest, run_start, sync)
