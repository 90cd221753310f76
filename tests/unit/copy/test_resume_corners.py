"""Rare sequences of events between two attempts: the next one skips nothing and doubles nothing.

An attempt is killed while the position of its last records is not stored.
"""

from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.domain.incidents import IncidentKind
from tests.memory.compaction import remove
from tests.memory.stage import REMOTE, RunningTask
from tests.unit.copy.one_partition import QUIET_S, OnePartition, copy_of

HANGS_S: Final = 120.0
"""Longer than the attempts to explain a refused sequence take."""

STAMPS: Final = "message.timestamp.type", "LogAppendTime"


def copy_and_die(partition: OnePartition, stored: int, end: int) -> None:
    """Copy values up to `end`, and store the position behind the first ones only."""
    task = partition.start()
    partition.write_batches(0, stored)
    partition.run_until_stored(stored - 1)
    partition.write_batches(stored, end)
    partition.run_until_written(end)
    task.kill()
    partition.require_stored(stored - 1)


def start_and_settle(partition: OnePartition) -> RunningTask:
    task = partition.start()
    partition.run_for(QUIET_S)
    return task


@pytest.mark.parametrize("source_start", [20, 80], ids="the source begins at {}".format)
def test_equal_records_behind_what_retention_removed_are_copied(
    partition: OnePartition, source_start: int
) -> None:
    partition.target_config.update([STAMPS])
    (plan,) = partition.plan.partitions
    partition.plan = replace(partition.plan, partitions=(replace(plan, target_stamps_append_time=True),))
    task = partition.start()
    partition.write([7] * 10)
    partition.run_until_stored(9)
    partition.write([7] * 20)
    partition.run_until_written(30)
    task.kill()
    partition.require_stored(9)
    partition.write([7] * 100)
    partition.source.delete_before(source_start)
    start_and_settle(partition)
    assert len(partition.copied) == 130 - max(0, source_start - 30)


def test_a_source_that_was_truncated_between_attempts_is_copied_from_where_it_diverged(
    partition: OnePartition,
) -> None:
    copy_and_die(partition, 50, 80)
    partition.source.truncate(30, partition.stage.source.now_ms())
    partition.write_batches(80, 180)
    task = start_and_settle(partition)
    assert partition.copied == list(range(180))
    assert copy_of(task).incidents == {IncidentKind.SOURCE_TRUNCATED: 1}


def test_a_target_that_begins_to_stamp_append_time_gets_no_record_twice(partition: OnePartition) -> None:
    task = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.target_config.update([STAMPS])
    partition.write_batches(50, 100)
    partition.run_until_written(100)
    task.kill()
    partition.require_stored(49)
    start_and_settle(partition)
    assert partition.copied == list(range(100))


def test_a_target_whose_retention_passes_the_stored_offset_gets_no_record_twice(
    partition: OnePartition,
) -> None:
    copy_and_die(partition, 50, 100)
    partition.target.delete_before(70)
    partition.write_batches(100, 120)
    start_and_settle(partition)
    assert partition.copied == list(range(70, 120))


@pytest.mark.parametrize("removed", [range(70, 95), range(20, 100)], ids=["some", "all"])
def test_what_compaction_removes_from_the_target_before_a_restart_is_not_copied_again(
    partition: OnePartition, removed: range
) -> None:
    copy_and_die(partition, 50, 100)
    remove(partition.target, removed)
    partition.write_batches(100, 120)
    start_and_settle(partition)
    assert partition.copied == [number for number in range(120) if number not in removed]


@pytest.mark.parametrize("is_stopped", [False, True], ids=["killed", "stopped"])
def test_what_is_above_a_high_watermark_that_stands_still_is_not_copied_twice(
    partition: OnePartition, *, is_stopped: bool
) -> None:
    task = partition.start()
    partition.run_until_stored(-1)
    partition.target.hold()
    partition.write(range(3))
    partition.run_until_written(3)
    if is_stopped:
        task.loop.stop()
        partition.run_until(lambda: task.is_over)
    else:
        task.kill()
    partition.write(range(3, 5))
    partition.start()
    partition.run_for(HANGS_S)
    partition.target.release()
    partition.stage.target.changed()
    partition.run_for(QUIET_S)
    assert partition.copied == list(range(5))


def test_a_source_that_is_truncated_again_before_anything_was_read_is_copied_from_where_it_diverged(
    partition: OnePartition,
) -> None:
    task = partition.start()
    for first in (0, 2, 4):
        partition.write(range(first, first + 2))
        partition.run_until_stored(first + 1)
    for end in (4, 2):
        partition.source.truncate(end, partition.stage.source.now_ms())
        partition.stage.source.changed()
        partition.run_for(0.5)
    assert copy_of(task).incidents == {IncidentKind.SOURCE_TRUNCATED: 2}
    partition.write(range(6, 9))
    partition.run_for(QUIET_S)
    assert partition.copied == list(range(9))


def test_a_target_that_may_not_be_read_is_fenced_all_the_same(
    partition: OnePartition,
) -> None:
    """Records behind the stored position come twice, which is an incident; nothing is lost."""
    copy_and_die(partition, 50, 60)
    partition.stage.target.unreadable.add(REMOTE)
    task = start_and_settle(partition)
    partition.write_batches(60, 70)
    partition.run_for(QUIET_S)
    assert copy_of(task).incidents == {IncidentKind.NOT_READ_BACK: 1}
    assert partition.copied == [*range(60), *range(50, 70)]
