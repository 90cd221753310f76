"""Copying without the right to transactional ids: at least once, from the stored position."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparkmirror.domain.incidents import IncidentKind
from tests.memory.client_run import OneFault
from tests.memory.network import Fate
from tests.memory.stage import RunningTask
from tests.unit.copy.one_partition import QUIET_S, OnePartition, copy_of, one_partition

PRODUCE = 0
BOTH = {IncidentKind.UNFENCED: 1, IncidentKind.NOT_IDEMPOTENT: 1}
RIGHT = "needs WRITE on transactional ids that begin with sparkmirror-: kafka-acls.sh"


@pytest.fixture
def partition() -> Iterator[OnePartition]:
    with one_partition() as made:
        made.stage.target.transactions.is_denied = True
        yield made


def test_a_crash_repeats_what_is_behind_the_stored_position(
    partition: OnePartition, caplog: pytest.LogCaptureFixture
) -> None:
    first = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.write_batches(50, 70)
    partition.run_until_written(70)
    first.kill()
    partition.require_stored(49)
    caplog.clear()
    second = partition.start()
    partition.write_batches(70, 80)
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(70), *range(50, 80)]
    copy = copy_of(second)
    assert copy.incidents == {IncidentKind.UNFENCED: 1}
    assert "copying at least once" in str(copy.notice)
    assert RIGHT in str(copy.notice)
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [RIGHT in each for each in warnings] == [True]


def test_without_idempotent_writes_a_crash_repeats_records_and_loses_none(partition: OnePartition) -> None:
    partition.stage.target.transactions.is_idempotence_denied = True
    first = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.write_batches(50, 70)
    partition.run_until_written(70)
    assert copy_of(first).incidents == BOTH
    assert RIGHT in str(copy_of(first).notice)
    first.kill()
    partition.require_stored(49)
    second = partition.start()
    partition.write_batches(70, 80)
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(70), *range(50, 80)]
    assert copy_of(second).incidents == BOTH


def copy_past_a_loss_of_the_source(partition: OnePartition) -> RunningTask:
    """Copy 50 records, of which the source loses the last 20 then, and the 30 that follow."""
    task = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.source.truncate(30, partition.stage.source.now_ms())
    partition.stage.source.changed()
    partition.run_for(1.0)
    partition.write_batches(50, 80)
    partition.run_for(QUIET_S)
    return task


def test_a_user_who_wants_no_idempotent_writes_is_told_what_that_means(
    partition: OnePartition, caplog: pytest.LogCaptureFixture
) -> None:
    """Once of each partition, however often it starts again."""
    partition.stage.target.transactions.is_denied = False
    partition.plan = replace(partition.plan, producer=replace(partition.plan.producer, idempotent=False))
    task = copy_past_a_loss_of_the_source(partition)
    assert partition.copied == list(range(80))
    assert copy_of(task).incidents == {**BOTH, IncidentKind.SOURCE_TRUNCATED: 1}
    told = [it.getMessage() for it in caplog.records if "enable.idempotence is false" in it.getMessage()]
    assert len(told) == len(BOTH)
    assert all("copying at least once" in it for it in told)


def test_what_the_target_lost_hides_no_missing_right(partition: OnePartition) -> None:
    first = partition.start_and_copy(30)
    partition.write_batches(30, 50)
    partition.run_until_stored(49)
    first.kill()
    partition.target.truncate(30, partition.stage.target.now_ms())
    partition.write_batches(50, 60)
    copy = copy_of(partition.start())
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(30), *range(50, 60)]
    assert copy.incidents == {IncidentKind.TARGET_TRUNCATED: 1, IncidentKind.UNFENCED: 1}
    assert "the target lost 20 records" in str(copy.notice)
    assert RIGHT in str(copy.notice)


def test_an_orderly_restart_repeats_nothing(partition: OnePartition) -> None:
    first = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_written(50)
    first.loop.stop()
    partition.run_until(lambda: first.is_over)
    partition.write_batches(50, 60)
    partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == list(range(60))


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
def test_a_request_that_is_sent_again_repeats_nothing(partition: OnePartition, fate: Fate) -> None:
    partition.start()
    partition.write_batches(0, 20)
    partition.run_until_written(20)
    partition.stage.network.faults = faults = OneFault()
    faults.inject(PRODUCE, fate)
    partition.write_batches(20, 100)
    partition.run_for(4 * QUIET_S)
    assert faults.is_used
    assert partition.copied == list(range(100))


def test_what_the_source_lost_under_way_repeats_nothing(partition: OnePartition) -> None:
    task = copy_past_a_loss_of_the_source(partition)
    assert partition.copied == list(range(80))
    assert copy_of(task).incidents == {IncidentKind.UNFENCED: 1, IncidentKind.SOURCE_TRUNCATED: 1}


def test_two_tasks_lose_nothing(partition: OnePartition) -> None:
    """Each copies all from where it started, in order."""
    partition.start()
    partition.start()
    partition.write_batches(0, 50)
    partition.run_for(QUIET_S)
    assert sorted(set(partition.copied)) == list(range(50))
    assert len(partition.copied) == 100
