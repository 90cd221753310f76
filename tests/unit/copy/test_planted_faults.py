"""The judge of the drill finds each fault that is planted into the target."""

import random
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.batches.record_batch import TRANSACTIONAL
from sparkmirror.domain.ids import TopicPartition
from tests.memory.stage import REMOTE, Shape, Stage
from tests.support.batches import Rec, decode, encode
from tests.support.planted_faults import FAULTS

MIRROR: Final = 7
JUDGES: Final = {
    "plain": Shape(),
    "transactional": Shape(is_transactional=True),
    "lossy": Shape(is_lossy=True),
    "transactional-lossy": Shape(is_transactional=True, is_lossy=True),
    "unfenced": Shape(is_fenced=False),
}

counts = st.tuples(st.integers(2, 8), st.integers(2, 8))
places = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)
sizes = st.lists(st.integers(1, 4), max_size=8)


def stage_with(shape: Shape, counts: Sequence[int]) -> tuple[Stage, list[list[Rec]]]:
    """Records at the source that must arrive, and what a right mirror writes of each partition."""
    stage = Stage(random.Random(1), shape)
    stage.calm()
    for partition, count in enumerate(counts):
        stage.write(partition, count)
    return stage, [decode(stage.records.log(partition).batches[0].data) for partition in range(len(counts))]


def mirror(stage: Stage, partition: int, records: Sequence[Rec], sizes: Sequence[int]) -> None:
    left, at = iter(sizes), 0
    while at < len(records):
        size = next(left, 1)
        relative = [record._replace(offset=place) for place, record in enumerate(records[at : at + size])]
        _append(stage, TopicPartition(REMOTE, partition), relative, sequence=at)
        at += size


def _append(stage: Stage, partition: TopicPartition, records: Sequence[Rec], *, sequence: int) -> None:
    log, now_ms = stage.target.log(partition), stage.target.now_ms()
    is_transactional = stage.shape.is_transactional
    batch = encode(
        records,
        attributes=TRANSACTIONAL if is_transactional else 0,
        producer_id=MIRROR,
        producer_epoch=0,
        base_sequence=sequence,
    )
    assert log.append(bytes(batch), now_ms).error == 0
    for observer in stage.target.observers:
        observer(partition, log.batches[-1])
    if is_transactional:
        log.append_marker(MIRROR, 0, now_ms, commit=True)


def is_found(stage: Stage) -> bool:
    """Judge the stage as a run of the drill does at its end."""
    stage.check_committed()
    return bool(stage.violations) or not stage.is_complete


@settings(max_examples=25)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("judge", JUDGES)
@given(counts, places, sizes)
def test_fault_is_found(name: str, judge: str, counts: Sequence[int], place: float, sizes: list[int]) -> None:
    stage, copies = stage_with(JUDGES[judge], counts)
    mirror(stage, 0, FAULTS[name](copies[0], round(place * (counts[0] - 1))), sizes)
    mirror(stage, 1, copies[1], sizes)
    assert is_found(stage)


@settings(max_examples=25)
@pytest.mark.parametrize("judge", JUDGES)
@given(counts, places, places, sizes)
def test_record_that_arrives_in_another_partition_is_found(
    judge: str, counts: Sequence[int], place: float, other_place: float, sizes: list[int]
) -> None:
    stage, (copies, others) = stage_with(JUDGES[judge], counts)
    others.insert(round(other_place * len(others)), copies.pop(round(place * (len(copies) - 1))))
    mirror(stage, 0, copies, sizes)
    mirror(stage, 1, others, sizes)
    assert is_found(stage)


@pytest.mark.parametrize("judge", JUDGES)
@given(counts, places, sizes)
def test_records_that_two_partitions_have_exchanged_are_found(
    judge: str, counts: Sequence[int], place: float, sizes: list[int]
) -> None:
    stage, (copies, others) = stage_with(JUDGES[judge], counts)
    at = round(place * (min(counts) - 1))
    copies[at], others[at] = others[at], copies[at]
    mirror(stage, 0, copies, sizes)
    mirror(stage, 1, others, sizes)
    assert is_found(stage)


@pytest.mark.parametrize("judge", JUDGES)
@given(counts, sizes)
def test_right_copies_are_accepted(judge: str, counts: Sequence[int], sizes: list[int]) -> None:
    stage, copies = stage_with(JUDGES[judge], counts)
    for partition, records in enumerate(copies):
        mirror(stage, partition, records, sizes)
    assert not is_found(stage), stage.violations
