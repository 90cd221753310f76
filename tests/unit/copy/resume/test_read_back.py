"""ReadBack on clusters in memory, in virtual time."""

import random

import pytest

from sparkmirror.batches.batch_copying import CopyRules
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.resume.read_back import Found, ReadBack
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.kafka.wire import fetch
from tests.memory.client_run import OneFault
from tests.memory.network import Fate
from tests.memory.stage import REMOTE, Shape, Stage
from tests.unit.copy.copied_records import PRODUCER, SOURCE, TARGET, copy_batches_of, write_foreign

LIST_OFFSETS = 2


@pytest.fixture
def stage() -> Stage:
    """A source with batches of 2, 3, 1 and 4 records."""
    stage = Stage(random.Random(1), Shape(partitions=1))
    for count in (2, 3, 1, 4):
        stage.write(0, count)
    return stage


def find(stage: Stage, records: int = 2, *, end: int | None = None) -> Found:
    """From a position stored when so many records were copied."""
    plan = stage.plan()
    target = ConsumerSettings(plan.producer.connection)
    read_back = ReadBack(plan.consumer, target, {SOURCE: CopyRules()}, CycleDetection(plan))
    state = ProducerState(PRODUCER, records, records)
    log_end = stage.target.log(TARGET).end
    return read_back.find(CopyPartition(SOURCE, REMOTE), records, 0, state, log_end if end is None else end)


def test_nothing_behind_the_position_leaves_the_position(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    found = find(stage)
    assert (found.position, found.records, found.is_whole) == (2, 0, True)


def test_batches_behind_the_position_are_found_and_counted(stage: Stage) -> None:
    copy_batches_of(stage, 3)
    assert find(stage) == Found(position=6, records=4, is_whole=True, source_epoch=0)


def test_records_of_other_writers_are_not_counted(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    write_foreign(stage, 3)
    copy_batches_of(stage, 1)
    write_foreign(stage, 1)
    copy_batches_of(stage, 1)
    assert find(stage) == Found(position=6, records=4, is_whole=True, source_epoch=0)


def test_records_of_an_older_epoch_of_the_producer_are_not_counted(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    copy_batches_of(stage, 2, producer=ProducerId(PRODUCER.id, PRODUCER.epoch - 1))
    found = find(stage)
    assert (found.position, found.records, found.is_whole) == (2, 0, True)


def test_what_is_written_after_the_given_end_is_not_counted(stage: Stage) -> None:
    copy_batches_of(stage, 4)
    assert find(stage, end=6) == Found(position=6, records=4, is_whole=True, source_epoch=0)


def test_records_that_the_source_lost_make_the_result_incomplete(stage: Stage) -> None:
    copy_batches_of(stage, 3)
    stage.source.log(SOURCE).delete_before(5)
    found = find(stage)
    assert (found.records, found.is_whole) == (4, False)
    assert found.position == 6


def test_a_gap_in_the_sequences_makes_the_result_incomplete(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    copy_batches_of(stage, 2, gap=5)
    assert find(stage) == Found(position=6, records=4, is_whole=False, source_epoch=0)


def test_records_that_the_target_lost_make_the_result_incomplete(stage: Stage) -> None:
    copy_batches_of(stage, 3)
    stage.target.log(TARGET).delete_before(5)
    assert not find(stage).is_whole


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
@pytest.mark.parametrize("api_key", [fetch.API_KEY, LIST_OFFSETS])
def test_an_attempt_with_a_failed_request_succeeds_or_raises_a_retriable_error(
    stage: Stage, api_key: int, fate: Fate
) -> None:
    copy_batches_of(stage, 3)
    stage.source.log(SOURCE).delete_before(3)  # so that its offsets are listed
    stage.network.faults = faults = OneFault()
    faults.inject(api_key, fate)
    try:
        found = find(stage)
    except RetriableError:
        found = find(stage)
    assert faults.is_used
    assert (found.position, found.records) == (6, 4)


def test_a_leader_change_in_source_and_target_is_followed(stage: Stage) -> None:
    copy_batches_of(stage, 3)
    stage.source.move_leader(SOURCE)
    stage.target.move_leader(TARGET)
    assert find(stage) == Found(position=6, records=4, is_whole=True, source_epoch=0)
