"""Vectors of Kafka's OffsetSyncWriterTest and MirrorSourceTaskTest; runs are compared with single records."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.offset_syncs import OffsetSyncQueue, OffsetSyncState, RunVerdict
from sparkmirror.offsets.wire_records import OffsetSync

TP = TopicPartition("t", 0)
OTHER = TopicPartition("u", 1)


def test_single_records_are_synced_as_by_java() -> None:
    state = OffsetSyncState(50)
    vectors = [
        *[(0, 100, True), (2, 102, True), (3, 152, False), (4, 153, True), (5, 154, False), (6, 203, False)],
        *[(7, 204, True), (2, 206, True), (3, 207, False), (4, 3, True), (5, 4, False)],
    ]
    for upstream, downstream, expected in vectors:
        assert state.update(upstream, downstream) is expected, (upstream, downstream)
        state.reset()


def test_a_due_sync_stays_due_until_it_is_queued() -> None:
    state = OffsetSyncState(50)
    assert state.update(0, 100)
    assert state.update(1, 101)
    state.reset()
    assert not state.update(2, 102)


def test_a_lag_of_zero_syncs_every_record() -> None:
    state = OffsetSyncState(0)
    for offset in range(5):
        assert state.update(offset, offset)
        state.reset()
    assert state.update_run(Run(5, 5, 10)) == RunVerdict(sync_first=False, sync_last=True)


def test_negative_lag_equals_zero() -> None:
    assert OffsetSyncState(-1).update_run(Run(0, 0, 3)) == RunVerdict(sync_first=True, sync_last=True)


def test_runs_are_synced_at_gaps_and_when_the_lag_is_reached() -> None:
    state = OffsetSyncState(50)
    assert state.update_run(Run(0, 100, 10)) == RunVerdict(sync_first=True, sync_last=False)
    assert state.update_run(Run(10, 110, 10)) == RunVerdict(sync_first=False, sync_last=False)
    assert state.update_run(Run(20, 120, 40)) == RunVerdict(sync_first=False, sync_last=True)
    assert state.update_run(Run(61, 160, 1)) == RunVerdict(sync_first=True, sync_last=False), (
        "gap in the source"
    )
    assert state.update_run(Run(62, 3, 200)) == RunVerdict(sync_first=True, sync_last=True), (
        "target lost records"
    )
    assert state.update_run(Run(262, 900, 1)) == RunVerdict(sync_first=False, sync_last=True), (
        "gap on the target"
    )


@dataclass
class JavaOffsetSyncWriter:
    """JavaOffsetSyncWriter's OffsetSyncWriter, which is called for each record."""

    lag: int
    pending: OffsetSync | None = None
    delayed: OffsetSync | None = None
    state: OffsetSyncState = field(init=False)

    def __post_init__(self) -> None:
        self.state = OffsetSyncState(self.lag)

    def acknowledged(self, run: Run) -> None:
        for step in range(run.count):
            sync = OffsetSync(TP, run.first_upstream + step, run.first_downstream + step)
            if self.state.update(sync.upstream_offset, sync.downstream_offset):
                self.pending, self.delayed = sync, None
                self.state.reset()
            else:
                self.delayed = sync


RUNS = st.lists(st.builds(Run, st.integers(0, 60), st.integers(0, 60), st.integers(1, 30)), max_size=12)
STEPS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 5]), st.sampled_from([0, 0, 0, 1, 9]), st.integers(1, 30))
)


def following(steps: list[tuple[int, int, int]]) -> list[Run]:
    runs, upstream, downstream = [], 0, 0
    for gap, jump, count in steps:
        runs.append(Run(upstream + gap, downstream + jump, count))
        upstream, downstream = runs[-1].last_upstream + 1, runs[-1].last_downstream + 1
    return runs


@given(st.one_of(RUNS, STEPS.map(following)), st.integers(0, 40))
def test_run_changes_the_state_as_its_single_records_do(runs: list[Run], lag: int) -> None:
    java, state = JavaOffsetSyncWriter(lag), OffsetSyncState(lag)
    for run in runs:
        java.acknowledged(run)
        state.update_run(run)
        for attribute in OffsetSyncState.__slots__:
            assert getattr(state, attribute) == getattr(java.state, attribute)


@given(STEPS.map(following), st.integers(0, 40))
def test_queued_syncs_are_never_behind_javas(runs: list[Run], lag: int) -> None:
    java, queue = JavaOffsetSyncWriter(lag), OffsetSyncQueue(lag)
    newest = None
    for run in runs:
        java.pending = None
        java.acknowledged(run)
        drained = drain_after(queue, run)
        newest = drained[-1] if drained else newest
        assert len(drained) <= 2
        assert bool(drained) == bool(java.pending), "as many writes as Java at most, and none missing"
        if java.pending:
            assert drained[-1].upstream_offset >= java.pending.upstream_offset
        assert all(is_exact(sync, run) for sync in drained)
    queue.flush_delayed()
    flushed = queue.drain()
    newest = flushed[-1] if flushed else newest
    if runs:
        assert newest == OffsetSync(TP, runs[-1].last_upstream, runs[-1].last_downstream)


def drain_after(queue: OffsetSyncQueue, run: Run) -> list[OffsetSync]:
    queue.acknowledged(TP, run)
    return queue.drain()


def is_exact(sync: OffsetSync, run: Run) -> bool:
    step = sync.upstream_offset - run.first_upstream
    return 0 <= step < run.count and sync.downstream_offset == run.first_downstream + step


def test_first_offset_of_a_run_is_written_with_the_newest_sync() -> None:
    queue = OffsetSyncQueue(10)
    queue.acknowledged(TP, Run(0, 100, 5))
    queue.acknowledged(TP, Run(5, 105, 100))
    queue.acknowledged(TP, Run(105, 205, 100))
    assert queue.drain() == [OffsetSync(TP, 0, 100), OffsetSync(TP, 204, 304)]
    assert queue.drain() == []


def test_new_run_replaces_unwritten_syncs_except_the_first() -> None:
    """The first sync is needed to translate older offsets at all."""
    queue = OffsetSyncQueue(10)
    queue.acknowledged(TP, Run(5, 0, 50))
    queue.acknowledged(TP, Run(60, 50, 30))
    queue.acknowledged(TP, Run(97, 80, 2))
    assert queue.drain() == [OffsetSync(TP, 5, 0), OffsetSync(TP, 97, 80)]
    queue.flush_delayed()
    assert queue.drain() == [OffsetSync(TP, 98, 81)]
    queue.acknowledged(TP, Run(110, 90, 20))
    assert queue.drain() == [OffsetSync(TP, 110, 90), OffsetSync(TP, 129, 109)]


def test_delayed_syncs_are_written_once_at_the_flush() -> None:
    queue = OffsetSyncQueue(100)
    queue.acknowledged(TP, Run(0, 0, 1))
    assert queue.drain() == [OffsetSync(TP, 0, 0)]
    queue.acknowledged(TP, Run(1, 1, 4))
    assert queue.drain() == []
    queue.flush_delayed()
    assert queue.drain() == [OffsetSync(TP, 4, 4)]
    queue.flush_delayed()
    assert queue.drain() == []


def test_partitions_are_drained_in_the_order_of_their_first_sync() -> None:
    queue = OffsetSyncQueue(100)
    queue.acknowledged(OTHER, Run(3, 3, 1))
    queue.acknowledged(TP, Run(0, 0, 1))
    queue.acknowledged(OTHER, Run(4, 4, 1))
    queue.flush_delayed()
    assert queue.drain() == [OffsetSync(OTHER, 3, 3), OffsetSync(OTHER, 4, 4), OffsetSync(TP, 0, 0)]


def test_a_dropped_partition_starts_again() -> None:
    queue = OffsetSyncQueue(100)
    queue.acknowledged(TP, Run(0, 0, 5))
    queue.forget(TP)
    queue.flush_delayed()
    assert queue.drain() == []
    queue.acknowledged(TP, Run(5, 5, 1))
    assert queue.drain() == [OffsetSync(TP, 5, 5)]
