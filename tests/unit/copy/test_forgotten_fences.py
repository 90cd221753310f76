"""Targets that lost or forgot what fences attempts: nothing is skipped, and what is repeated is told."""

from typing import Any, Final

import pytest

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.batches.record_batch import rewrite_header
from sparkmirror.domain.incidents import IncidentKind
from tests.memory.partition_log import PartitionLog
from tests.support.batches import Rec, encode
from tests.unit.copy.one_partition import QUIET_S, OnePartition, copy_of

AGED_S: Final = 310.0
"""Metadata is read again after 300 s, where nothing fails."""


def forget_and_append(partition: OnePartition, values: range, *, skips: int = 0) -> None:
    """The leader forgets the producers, and a late batch of the one that wrote last arrives."""
    state = stored_producer(partition)
    partition.target.producers.forget()
    append(partition, state.producer, state.next_sequence + skips, values)


def stored_producer(partition: OnePartition) -> ProducerState:
    position = partition.position
    assert position is not None
    assert position.producer is not None
    return position.producer


def append(partition: OnePartition, writer: ProducerId, sequence: int, values: range) -> None:
    now_ms = partition.stage.target.now_ms()
    batch = bytearray(encode([Rec(at, now_ms, b"key", b"%d" % value) for at, value in enumerate(values)]))
    rewrite_header(memoryview(batch), *writer, sequence)
    assert partition.target.append(bytes(batch), now_ms).error == 0
    partition.stage.target.changed()


def test_a_batch_that_arrives_without_the_one_before_hides_no_record(partition: OnePartition) -> None:
    """Two were in flight; the first was refused, and the leader had forgotten the producer by the second."""
    first = partition.start_and_copy(10)
    first.kill()
    partition.write_batches(10, 30)
    forget_and_append(partition, range(20, 30), skips=10)
    task = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(10), *range(20, 30), *range(10, 30)]
    assert copy_of(task).incidents == {IncidentKind.RECORDS_REPEATED: 1}


def test_a_foreign_record_in_the_place_of_a_refused_batch_hides_no_record(partition: OnePartition) -> None:
    """There are as many offsets as there should be."""
    first = partition.start_and_copy(10)
    first.kill()
    partition.write_batches(10, 30)
    append(partition, NOT_IDEMPOTENT, -1, range(100, 110))
    forget_and_append(partition, range(20, 30), skips=10)
    task = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(10), *range(100, 110), *range(20, 30), *range(10, 30)]
    assert copy_of(task).incidents == {IncidentKind.RECORDS_REPEATED: 1}


def test_a_batch_that_was_taken_before_an_acknowledged_one_is_told(partition: OnePartition) -> None:
    """The leader forgot the producer twice: it took the second of two without the first, and then that."""
    first = partition.start_and_copy(10)
    forget_and_append(partition, range(20, 30), skips=10)
    partition.target.producers.forget()
    partition.write(range(10, 20))
    partition.run_until_stored(19)
    first.kill()
    partition.write(range(20, 30))
    second = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(10), *range(20, 30), *range(10, 20)]
    assert copy_of(second).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


def test_a_batch_that_arrives_again_late_is_not_taken_for_the_last_one(partition: OnePartition) -> None:
    first = partition.start_and_copy(10)
    first.kill()
    writer = stored_producer(partition).producer
    append(partition, writer, 10, range(10, 20))
    append(partition, writer, 20, range(20, 30))
    partition.target.producers.forget()
    append(partition, writer, 10, range(10, 20))
    partition.write(range(10, 30))
    task = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(30), *range(10, 20)]
    assert copy_of(task).incidents == {IncidentKind.RECORDS_REPEATED: 1}


def test_a_batch_of_a_fenced_attempt_that_was_taken_is_told(partition: OnePartition) -> None:
    """The attempt's successor dies as well, and the next start meets it."""
    first = partition.start_and_copy(10)
    old = stored_producer(partition)
    first.kill()
    second = partition.start()
    partition.write(range(10, 20))
    partition.run_until_stored(19)
    second.kill()
    partition.target.producers.forget()
    append(partition, old.producer, old.next_sequence, range(10, 20))
    third = partition.start()
    partition.write(range(20, 30))
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(20), *range(10, 20), *range(20, 30)]
    assert copy_of(third).incidents == {IncidentKind.RECORDS_REPEATED: 1}


def test_a_batch_that_was_taken_behind_the_marker_is_continued(
    partition: OnePartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the successor's marker and its look-up; it is the next one, so nothing is repeated."""
    first = partition.start_and_copy(10)
    old = stored_producer(partition)
    first.kill()
    partition.write(range(10, 30))

    def append_late_batch(log: PartitionLog, *arguments: Any, **named: Any) -> None:
        append_marker(log, *arguments, **named)
        if log is partition.target and log.end == 11:
            log.producers.forget()
            append(partition, old.producer, old.next_sequence, range(10, 20))

    append_marker = PartitionLog.append_marker
    monkeypatch.setattr(PartitionLog, "append_marker", append_late_batch)
    second = partition.start()
    partition.run_until_stored(29)
    assert partition.copied == [*range(30)]
    assert not copy_of(second).incidents


def test_a_marker_in_the_place_of_the_last_record_does_not_hide_its_loss(partition: OnePartition) -> None:
    first = partition.start()
    partition.write([0])
    partition.run_until_stored(0)
    first.kill()
    partition.target.wipe()
    partition.stage.target.changed()
    second = partition.start()
    partition.run_for(QUIET_S)
    assert partition.target.end == 1
    assert copy_of(second).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


def test_a_loss_shows_behind_an_incident_of_the_source(partition: OnePartition) -> None:
    """An attempt that continues behind records that expired still knows where the target should end."""
    task = partition.start()
    partition.write_batches(0, 20)
    partition.run_until_stored(19)
    partition.target.truncate(10, partition.stage.target.now_ms())
    partition.source.hold()
    partition.write(range(20, 30))
    partition.source.delete_before(30)
    partition.source.release()
    partition.stage.source.changed()
    partition.run_for(QUIET_S)
    partition.write(range(30, 40))
    partition.run_for(QUIET_S)
    assert copy_of(task).incidents[IncidentKind.RECORDS_LOST] == 1
    assert copy_of(task).incidents[IncidentKind.TARGET_TRUNCATED] == 1


def test_a_target_that_expired_past_all_that_is_known_is_told(partition: OnePartition) -> None:
    first = partition.start_and_copy(10)
    partition.write(range(10, 20))
    partition.run_until_written(20)
    first.kill()
    partition.require_stored(9)
    partition.target.delete_before(20)
    second = partition.start()
    partition.run_for(QUIET_S)
    assert copy_of(second).incidents == {IncidentKind.NOT_READ_BACK: 1}


def test_a_batch_taken_again_does_not_stand_for_what_has_expired_before_it(partition: OnePartition) -> None:
    """The log starts with it: it is not where it should be, behind what was known."""
    first = partition.start_and_copy(10)
    first.kill()
    writer = stored_producer(partition).producer
    append(partition, writer, 10, range(10, 20))
    append(partition, writer, 20, range(20, 30))
    partition.target.producers.forget()
    append(partition, writer, 10, range(10, 20))
    partition.target.delete_before(30)
    partition.write(range(10, 30))
    task = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(10, 20), *range(20, 30)]
    assert copy_of(task).incidents == {IncidentKind.NOT_READ_BACK: 1}


def test_a_hole_that_has_expired_hides_no_record(partition: OnePartition) -> None:
    """A batch was refused: what is left has more sequences before it than there are offsets."""
    first = partition.start_and_copy(10)
    first.kill()
    writer = stored_producer(partition).producer
    append(partition, writer, 10, range(10, 12))
    partition.target.producers.forget()
    append(partition, writer, 20, range(20, 30))
    partition.target.delete_before(12)
    partition.write_batches(10, 30)
    task = partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(20, 30), *range(10, 30)]
    assert copy_of(task).incidents == {IncidentKind.NOT_READ_BACK: 1}


def test_what_a_frozen_attempt_writes_in_place_of_the_lost_marker_is_told(partition: OnePartition) -> None:
    """Just as many records as were lost, so no base offset tells of it: the next leader's log does."""
    first = partition.start_and_copy(10)
    frozen = stored_producer(partition)
    first.kill()
    second = partition.start()
    partition.run_for(QUIET_S)
    partition.target.truncate(10, partition.stage.target.now_ms())
    append(partition, frozen.producer, 10, range(10, 11))
    partition.run_for(AGED_S)
    partition.write(range(10, 20))
    partition.run_until_stored(19)
    assert partition.copied == [*range(10), 10, *range(10, 20)]
    assert copy_of(second).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


def test_a_lost_marker_is_written_again(partition: OnePartition) -> None:
    """The target lost no record; the attempt before may wake, and is fenced as before."""
    first = partition.start_and_copy(10)
    first.kill()
    second = partition.start()
    partition.run_for(QUIET_S)
    partition.target.truncate(10, partition.stage.target.now_ms())
    partition.run_for(AGED_S)
    assert partition.target.end == 11
    partition.write(range(10, 20))
    partition.run_until_stored(19)
    assert partition.copied == list(range(20))
    assert not copy_of(second).incidents
