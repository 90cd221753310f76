"""A target that loses records while they are copied."""

from sparkmirror.domain.incidents import IncidentKind
from tests.unit.copy.copied_records import write_foreign
from tests.unit.copy.one_partition import QUIET_S, OnePartition, copy_of


def end_transaction(partition: OnePartition) -> None:
    """End a transaction, whose marker takes an offset of the source."""
    partition.source.append_marker(1, 0, partition.stage.source.now_ms(), commit=True)


def test_a_target_that_comes_back_empty_is_an_incident(partition: OnePartition) -> None:
    task = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.target.wipe()
    partition.stage.target.changed()
    partition.write_batches(50, 100)
    partition.run_until_stored(99)
    assert partition.copied == list(range(50, 100))
    assert copy_of(task).incidents[IncidentKind.TARGET_TRUNCATED] == 1


def test_what_an_attempt_wrote_below_its_own_beginning_is_not_copied_twice(partition: OnePartition) -> None:
    """It fills the place of what was lost, marker included, and dies before that is acknowledged."""
    first = partition.start_and_copy(10)
    partition.write(range(10, 20))
    partition.run_until_stored(19)
    first.kill()
    second = partition.start()
    partition.run_for(QUIET_S)
    partition.target.truncate(10, partition.stage.target.now_ms())
    partition.target.hold()
    partition.stage.target.changed()
    partition.write(range(20, 31))
    partition.run_until_written(21)
    second.kill()
    partition.target.release()
    partition.stage.target.changed()
    third = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(10), *range(20, 31)]
    assert copy_of(third).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


def test_what_fills_the_place_of_acknowledged_records_is_not_copied_twice(partition: OnePartition) -> None:
    """The attempt that wrote them continues there, and dies before that is acknowledged."""
    first = partition.start_and_copy(10)
    partition.target.truncate(0, partition.stage.target.now_ms())
    partition.target.hold()
    partition.stage.target.changed()
    partition.write(range(10, 22))
    partition.run_until_written(12)
    first.kill()
    partition.target.release()
    partition.stage.target.changed()
    second = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == list(range(10, 22))
    assert copy_of(second).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


def test_a_loss_of_all_that_was_acknowledged_is_told_behind_gaps(partition: OnePartition) -> None:
    """Only the record of the attempt's ends says that it was acknowledged: no position was stored since."""
    first = partition.start()
    partition.run_until_stored(-1)
    partition.write(range(10))
    partition.run_until(lambda: copy_of(first).written == 10)
    end_transaction(partition)
    partition.write(range(10, 20))
    partition.run_until(lambda: copy_of(first).written == 20)
    end_transaction(partition)
    partition.target.hold()
    partition.write(range(20, 30))
    partition.run_until_written(30)
    partition.require_stored(-1)
    first.kill()
    partition.target.release()
    partition.target.wipe()
    partition.stage.target.changed()
    second = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == list(range(20, 30))
    assert copy_of(second).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


def test_what_fills_the_place_of_acknowledged_records_is_found_behind_records_of_others(
    partition: OnePartition,
) -> None:
    first = partition.start_and_copy(10)
    partition.target.truncate(0, partition.stage.target.now_ms())
    partition.target.hold()
    partition.stage.target.changed()
    partition.write(range(10, 14))
    partition.run_until_written(4)
    write_foreign(partition.stage, 6)
    partition.write(range(14, 20))
    partition.run_until_written(16)
    first.kill()
    partition.target.release()
    partition.stage.target.changed()
    second = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(10, 14), *range(14, 20)]
    assert copy_of(second).incidents == {IncidentKind.TARGET_TRUNCATED: 1}
