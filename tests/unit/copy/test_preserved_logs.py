"""Offsets are preserved where positions or the target's records are lost, and where gaps are long."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest
from kafka.protocol.producer import EndTxnRequest, WriteTxnMarkersRequest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import IncidentKind, OnTopicRecreated, Reactions
from sparkmirror.domain.preserving import OnGap, Preserving
from tests.memory.checked_flow import POSITION_PARTITIONS, POSITIONS
from tests.memory.committed import places
from tests.memory.intercepted_broker import Request, intercept
from tests.memory.stage import REMOTE
from tests.support.batches import NOW_MS
from tests.unit.copy.copied_records import TARGET
from tests.unit.copy.one_partition import QUIET_S, OnePartition, copy_of, one_partition

LONG_GAP: Final = 6000
"""Offsets whose markers take longer than 10 s at the rate that is counted on."""


@pytest.fixture
def partition() -> Iterator[OnePartition]:
    with one_partition(preserves_offsets=True) as made:
        yield made


def end_transactions(partition: OnePartition, count: int) -> None:
    """End transactions, whose markers take offsets of the source."""
    for _ in range(count):
        partition.source.append_marker(1, 0, partition.stage.source.now_ms(), commit=True)
    partition.stage.source.changed()


def assert_same(partition: OnePartition) -> None:
    """Each record has the offset of its source, and both logs end alike."""
    source, target = partition.source, partition.stage.target.log(TARGET)
    assert places(target) == places(source)
    assert target.end == source.end


def replace_target(partition: OnePartition) -> None:
    partition.stage.replace_topic(partition.stage.target, REMOTE)


def test_without_stored_positions_the_logs_end_decides(partition: OnePartition) -> None:
    first = partition.start()
    partition.write(range(10))
    end_transactions(partition, 2)
    partition.write(range(10, 20))
    partition.run_until_stored(21)
    first.kill()
    for at in range(POSITION_PARTITIONS):
        partition.stage.target.log(TopicPartition(POSITIONS, at)).wipe()
    partition.write(range(20, 25))
    second = partition.start()
    partition.run_until_stored(26)
    assert_same(partition)
    assert not copy_of(second).incidents


@pytest.mark.parametrize("api_key", [EndTxnRequest.API_KEY, WriteTxnMarkersRequest.API_KEY])
def test_markers_whose_request_is_lost_are_written_soon(partition: OnePartition, api_key: int) -> None:
    """Such requests are lost when a broker restarts."""
    stage, lost = partition.stage, list[Request]()

    def lose(request: Request, carry_out: Callable[[], None]) -> None:
        if request.api_key == api_key and not lost:
            lost.append(request)
            stage.network.disconnect()
        else:
            carry_out()

    for broker in stage.target.brokers:
        intercept(stage.network, broker, lose)
    partition.write(range(10))
    task = partition.start()
    for number in range(1, 4):
        end_transactions(partition, 1)
        partition.write(range(10 * number, 10 * number + 10))
        partition.run_until_written(11 * number + 10)
    assert len(lost) == 1
    assert_same(partition)
    assert not copy_of(task).incidents


@pytest.mark.parametrize("is_running", [True, False])
def test_what_a_target_has_lost_is_copied_again_to_its_offsets(
    partition: OnePartition, is_running: bool
) -> None:
    task = partition.start_and_copy(30)
    partition.write(range(30, 50))
    partition.run_until_stored(49)
    if not is_running:
        task.kill()
    partition.target.truncate(30, partition.stage.target.now_ms())
    partition.stage.target.changed()
    partition.write_batches(50, 60)
    if not is_running:
        task = partition.start()
    partition.run_until_stored(59)
    assert_same(partition)
    assert copy_of(task).incidents == {IncidentKind.TARGET_TRUNCATED: 1}


@pytest.mark.parametrize(("first", "later_ms"), [(50, 0), (0, 1)], ids=["other content", "other timestamp"])
def test_a_record_that_lands_in_an_emptied_target_stops_the_partition(
    partition: OnePartition, first: int, later_ms: int
) -> None:
    """The leader has forgotten the producer, so it takes any sequence."""
    task = partition.start()
    partition.write(range(10), at_ms=NOW_MS)
    partition.write_batches(10, 50)
    partition.run_until_stored(49)
    partition.target.wipe()
    partition.stage.target.changed()
    partition.write(range(first, first + 10), at_ms=NOW_MS + later_ms)
    partition.run_for(QUIET_S)
    assert copy_of(task).incidents[IncidentKind.OFFSET_MISMATCH] == 1
    assert "offsets can't be preserved: near.orders-0: it has another record at offset 9" in str(
        copy_of(task).error
    )
    assert partition.target.end == 10, "nothing is written behind it"


@pytest.mark.parametrize("is_running", [True, False])
def test_a_target_that_was_recreated_gets_all_that_the_source_has(
    partition: OnePartition, is_running: bool
) -> None:
    task = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    if not is_running:
        task.kill()
    partition.source.delete_before(20)
    replace_target(partition)
    partition.write_batches(50, 60)
    if not is_running:
        task = partition.start()
    partition.run_for(2 * QUIET_S)
    assert partition.stage.target.log(TARGET).start == 20
    assert_same(partition)
    assert copy_of(task).incidents == {IncidentKind.TARGET_RECREATED: 1}


def test_a_target_that_was_recreated_stops_the_partition_if_configured(partition: OnePartition) -> None:
    first = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    first.kill()
    replace_target(partition)
    reactions = Reactions(on_topic_recreated=OnTopicRecreated.FAIL)
    partition.plan = replace(partition.plan, settings=replace(partition.plan.settings, reactions=reactions))
    second = partition.start()
    partition.run_for(QUIET_S)
    assert "on.topic.recreated is fail" in str(copy_of(second).error)
    assert not partition.stage.target.log(TARGET).end


def preserving(partition: OnePartition, settings: Preserving) -> None:
    partition.plan = replace(partition.plan, settings=replace(partition.plan.settings, preserving=settings))


def write_around_a_long_gap(partition: OnePartition) -> None:
    partition.write(range(10))
    end_transactions(partition, LONG_GAP)
    partition.write(range(10, 20))


def test_a_long_gap_is_an_incident_and_is_filled(partition: OnePartition) -> None:
    write_around_a_long_gap(partition)
    task = partition.start()
    partition.run_until_stored(LONG_GAP + 19)
    assert_same(partition)
    assert copy_of(task).incidents == {IncidentKind.OFFSET_GAP: 1}


def test_a_gap_that_takes_too_long_stops_the_partition_until_somebody_decides(
    partition: OnePartition,
) -> None:
    preserving(partition, Preserving(fill_timeout_s=11.0, on_gap=OnGap.STOP))
    write_around_a_long_gap(partition)
    task = partition.start()
    partition.run_for(QUIET_S)
    assert str(copy_of(task).error) == (
        "near.orders-0: offsets 10 to 6009 have no record at the source: 6000 control markers take their "
        "places, which takes about 12 s (offsets.gap): set it to wait; or, if the source's log starts behind "
        "them, let sparkmirror offsets preserve --recreate recreate the target topic from there on, without "
        "what only the target still has"
    )
    assert copy_of(task).incidents == {IncidentKind.OFFSET_GAP: 1}
    assert partition.target.end == 10
    task.kill()
    preserving(partition, Preserving(fill_timeout_s=11.0))
    partition.start()
    partition.run_until_stored(LONG_GAP + 19)
    assert_same(partition)


@pytest.mark.parametrize("has_records", [True, False])
def test_a_topic_that_is_recreated_for_a_gap_begins_behind_it(
    partition: OnePartition, *, has_records: bool
) -> None:
    preserving(partition, Preserving(fill_timeout_s=11.0, on_gap=OnGap.STOP))
    partition.write(range(10))
    end_transactions(partition, LONG_GAP)
    if has_records:
        partition.write(range(10, 20))
    task = partition.start()
    partition.run_for(QUIET_S)
    partition.source.delete_before(10 + LONG_GAP)
    replace_target(partition)
    partition.run_for(2 * QUIET_S)
    assert partition.stage.target.log(TARGET).start == 10 + LONG_GAP
    assert_same(partition)
    assert copy_of(task).error is None


@pytest.mark.parametrize("held", [1, 20])
def test_a_beginning_that_followers_lack_is_not_filled_again(partition: OnePartition, held: int) -> None:
    """The leader may have forgotten the filler's producer, whose records are as old as can be."""
    partition.source.begin_at(held)
    partition.target.hold()
    first = partition.start()
    partition.run_until_written(held)
    partition.target.producers.reload(partition.stage.target.now_ms())
    first.kill()
    task = partition.start()
    partition.run_for(QUIET_S)
    assert partition.target.end == held
    assert "not replicated: waiting for the followers" in str(copy_of(task).error)
    partition.target.release()
    partition.stage.target.changed()
    partition.write(range(10))
    partition.run_until_stored(held + 9)
    assert_same(partition)
    assert not copy_of(task).incidents
