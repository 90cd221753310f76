"""A partition with lag that stands still is named once, and once more when it moves."""

from dataclasses import replace

import pytest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.stalls import PATIENCE_S, Stall, StalledPartitions
from sparkmirror.storage.progress import PartitionProgress
from tests.support.progress_records import IDLE

WAITING = replace(IDLE, position=41, lag=7, error=None)


def told(watch: StalledPartitions, now: float, *reports: PartitionProgress) -> list[Stall]:
    return list(watch.look(reports, now))


def test_a_stall_and_its_end_are_told_once() -> None:
    watch = StalledPartitions()
    assert told(watch, 0.0, WAITING) == []
    assert told(watch, PATIENCE_S - 0.1, WAITING) == []
    assert told(watch, PATIENCE_S + 1, replace(WAITING, lag=9)) == [
        Stall(replace(WAITING, lag=9), PATIENCE_S + 1)
    ]
    assert told(watch, PATIENCE_S + 2, WAITING) == []
    moved = replace(WAITING, position=42)
    assert told(watch, PATIENCE_S + 3, moved) == [Stall(moved, None)]
    assert told(watch, PATIENCE_S + 4, moved) == []


@pytest.mark.parametrize(
    "report",
    [replace(WAITING, lag=0), replace(WAITING, lag=None), replace(WAITING, error="the target is full")],
)
def test_who_has_nothing_to_do_or_says_why_is_not_stalled(report: PartitionProgress) -> None:
    watch = StalledPartitions()
    assert told(watch, 0.0, report) == told(watch, PATIENCE_S, report) == []


def test_a_partition_that_has_copied_nothing_yet_can_stall_too() -> None:
    watch, begun = StalledPartitions(), replace(WAITING, position=None)
    assert told(watch, 0.0, begun) == []
    assert told(watch, PATIENCE_S, begun) == [Stall(begun, PATIENCE_S)]


def test_each_partition_has_its_own_clock() -> None:
    watch, other = StalledPartitions(), replace(WAITING, source=TopicPartition("other", 0))
    told(watch, 0.0, WAITING)
    told(watch, 30.0, WAITING, other)
    assert told(watch, PATIENCE_S, WAITING, other) == [Stall(WAITING, PATIENCE_S)]
    assert told(watch, PATIENCE_S + 30, WAITING, other) == [Stall(other, PATIENCE_S)]
