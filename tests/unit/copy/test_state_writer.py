"""Acknowledged records become runs of offsets that are consecutive on both sides, and positions with them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import OffsetSyncPlan, StatePlan, TaskPlan, TransactionPlan
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Start
from sparkmirror.copy.state_writer import StateWriter, contiguous_runs
from sparkmirror.copy.write_strategy import WriteStrategy
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.offset_syncs import OffsetSyncQueue
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.settings.copy_partition import CopyPartition


def runs(offsets: list[int] | range, base_offset: int = 1000) -> list[Run]:
    return list(contiguous_runs(OutgoingBatch(memoryview(b""), offsets, 0), base_offset))


def test_a_batch_that_was_copied_whole_is_one_run() -> None:
    assert runs(range(5, 9)) == [Run(5, 1000, 4)]
    assert runs([7]) == [Run(7, 1000, 1)]


def test_records_are_missing_where_compaction_or_aborts_took_them() -> None:
    assert runs([5, 6, 9, 12, 13]) == [Run(5, 1000, 2), Run(9, 1002, 1), Run(12, 1003, 2)]


def test_a_gap_right_after_the_first_and_right_before_the_last() -> None:
    assert runs([1, 3, 4, 6]) == [Run(1, 1000, 1), Run(3, 1001, 2), Run(6, 1003, 1)]


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 2**40))
def test_runs_pair_every_record_with_its_copy(offsets: set[int], base_offset: int) -> None:
    upstream = sorted(offsets)
    found = runs(upstream, base_offset)
    pairs = [(run.first_upstream + at, run.first_downstream + at) for run in found for at in range(run.count)]
    assert pairs == list(zip(upstream, range(base_offset, base_offset + len(upstream)), strict=True))
    assert all(later.first_upstream > earlier.last_upstream + 1 for earlier, later in pairwise(found)), (
        "two runs that could be one"
    )


PLACE = TopicPartition("orders", 0)
COPIED = CopyPartition(PLACE, "near.orders")


def transactional() -> TaskPlan:
    connection = ConnectionSettings((("localhost", 9092),))
    return TaskPlan(
        flow=Flow(Alias("near"), Alias("far")),
        connector=ConnectorName("mirror"),
        task=0,
        job_epoch=1,
        announced_at=0,
        partitions=(COPIED,),
        consumer=ConsumerSettings(connection),
        producer=ProducerSettings(connection),
        state=StatePlan(connection, "positions", "progress"),
        offset_syncs=OffsetSyncPlan(connection, "syncs", lag_max=1000),
        transaction=TransactionPlan("mirror-0", 60.0),
    )


def test_a_committed_position_tells_the_whole_run_of_its_transaction() -> None:
    """The next attempt syncs it again: this one may end between the commit and its offset syncs."""
    writer = StateWriter(transactional())
    copy = PartitionCopy(COPIED, CopyRules(), read_committed=False)
    copy.begin(Start(100, ProducerState(ProducerId(7, 0), 0, 500)), WriteStrategy())
    for base_offset, offsets in ((500, range(100, 110)), (510, range(112, 130)), (528, range(130, 150))):
        batch = OutgoingBatch(memoryview(b""), offsets, 0)
        writer.note_sync(PLACE, batch, base_offset)
        copy.acknowledged(batch, base_offset, 0.0, completes=False)
    committed = writer.moved_positions([copy])[PLACE]
    assert committed.run == Run(112, 510, 38)
    queue = OffsetSyncQueue(1000)
    queue.continue_from(PLACE, committed.run)
    (sync,) = queue.drain()
    history = SyncHistory(sync, queue.run_behind(sync))
    assert [history.translate(upstream) for upstream in (112, 120, 149, 150)] == [510, 518, 547, 548]
