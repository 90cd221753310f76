"""The topic of positions is deleted while nobody remembers them: attempts say where copying continues."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from kafka.protocol.producer import InitProducerIdRequest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.incidents import OnNewerPosition
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.storage.positions import Position, forgetting, position_record
from tests.memory.checked_flow import POSITIONS
from tests.memory.network import Fate
from tests.memory.stage import REMOTE, TOPIC
from tests.unit.copy.copied_records import SOURCE, TARGET
from tests.unit.copy.one_partition import QUIET_S, OnePartition


def lose_positions(partition: OnePartition) -> None:
    """The topic is deleted, and the driver creates it again."""
    partition.stage.forward.lose(POSITIONS)
    partition.stage.forward.create_own_topics()


def copy(partition: OnePartition, *, stops: bool) -> None:
    """Copy 100 records, of which 50 have a stored position when the task dies, or all when it stops."""
    task = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.write_batches(50, 100)
    partition.run_until_written(100)
    if stops:
        task.loop.stop()
        partition.run_until(lambda: task.is_over)
    else:
        task.kill()


def write(partition: OnePartition, record: LogRecord) -> None:
    state = partition.plan.state
    writer = TopicWriter(state.connection)
    writer.write(state.positions_topic, [record])
    writer.close()


def start_and_settle(partition: OnePartition) -> None:
    partition.start()
    partition.write_batches(100, 120)
    partition.run_for(QUIET_S)


@pytest.mark.parametrize("stops", [True, False], ids=["stopped", "killed"])
def test_no_record_is_copied_twice(partition: OnePartition, *, stops: bool) -> None:
    copy(partition, stops=stops)
    lose_positions(partition)
    start_and_settle(partition)
    assert partition.copied == list(range(120))
    assert partition.position is not None
    assert partition.position.offset == 119


class AtClaim:
    """Calls once when a task claims an epoch: it knows the topics then, and has read no position."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._calls = [call]

    def fate(self, api_key: int, /) -> Fate:
        if api_key == InitProducerIdRequest.API_KEY and self._calls:
            self._calls.pop()()
        return Fate.WELL


def test_no_record_is_copied_twice_when_the_topic_is_lost_while_a_task_starts(
    partition: OnePartition,
) -> None:
    copy(partition, stops=False)
    partition.stage.network.faults = AtClaim(lambda: lose_positions(partition))
    start_and_settle(partition)
    assert partition.copied == list(range(120))
    lose_positions(partition)
    partition.start()
    partition.write_batches(120, 140)
    partition.run_for(QUIET_S)
    assert partition.copied == list(range(140))


def test_no_record_is_copied_twice_after_the_topic_was_lost_again(partition: OnePartition) -> None:
    copy(partition, stops=False)
    for first in range(100, 160, 20):
        lose_positions(partition)
        task = partition.start()
        partition.write_batches(first, first + 20)
        partition.run_for(QUIET_S)
        task.kill()
    assert partition.copied == list(range(160))


def test_what_is_to_be_repeated_is_copied_again(partition: OnePartition) -> None:
    copy(partition, stops=True)
    lose_positions(partition)
    settings = partition.plan.settings
    reactions = settings.reactions._replace(on_newer_position=OnNewerPosition.REPEAT)
    partition.plan = replace(partition.plan, settings=replace(settings, reactions=reactions))
    start_and_settle(partition)
    assert partition.copied == [*range(100), *range(120)]


@pytest.mark.parametrize("is_lost", [False, True], ids=["kept", "lost before"])
def test_a_reset_begins_again(partition: OnePartition, *, is_lost: bool) -> None:
    copy(partition, stops=True)
    plan = partition.plan
    if is_lost:
        lose_positions(partition)
    write(partition, forgetting(plan.connector, plan.flow.source, SOURCE))
    start_and_settle(partition)
    assert partition.copied == [*range(100), *range(120)]


def test_positions_that_are_stored_since_count(partition: OnePartition) -> None:
    copy(partition, stops=True)
    plan = partition.plan
    lose_positions(partition)
    write(partition, position_record(plan.connector, plan.flow.source, SOURCE, Position(89)))
    start_and_settle(partition)
    assert partition.copied == [*range(100), *range(90, 120)]


def test_a_copy_that_is_deleted_too_begins_again(partition: OnePartition) -> None:
    copy(partition, stops=True)
    lose_positions(partition)
    partition.stage.replace_topic(partition.stage.target, REMOTE)
    partition.start()
    partition.run_for(QUIET_S)
    partition.target = partition.stage.target.log(TARGET)
    assert partition.copied == list(range(100))


def test_a_source_that_is_created_again_is_copied_from_its_first_record(partition: OnePartition) -> None:
    copy(partition, stops=True)
    lose_positions(partition)
    partition.stage.replace_topic(partition.stage.source, TOPIC)
    partition.start()
    partition.source = partition.stage.source.log(SOURCE)
    partition.write_batches(200, 220)
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(100), *range(200, 220)]
