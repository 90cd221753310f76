"""Checks that stalls and silences are reported once, and their ends once."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.stalls import (
    SILENT_AFTER_S,
    STALLED_AFTER_S,
    Silence,
    SilentPartitions,
    Stall,
    StalledPartitions,
)
from sparkmirror.storage.progress import JobEpoch, PartitionProgress
from tests.support.progress_records import IDLE

SECOND = JobEpoch(IDLE.connector, 2, partitions=3)
WAITING = replace(IDLE, position=41, lag=7, error=None)


def stalls(watch: StalledPartitions, now: float, *reports: PartitionProgress) -> list[Stall]:
    return list(watch.check(reports, now))


def test_a_stall_and_its_end_are_reported_once() -> None:
    watch = StalledPartitions()
    assert stalls(watch, 0.0, WAITING) == []
    assert stalls(watch, STALLED_AFTER_S - 0.1, WAITING) == []
    assert stalls(watch, STALLED_AFTER_S + 1, replace(WAITING, lag=9)) == [
        Stall(replace(WAITING, lag=9), STALLED_AFTER_S + 1)
    ]
    assert stalls(watch, STALLED_AFTER_S + 2, WAITING) == []
    moved = replace(WAITING, position=42)
    assert stalls(watch, STALLED_AFTER_S + 3, moved) == [Stall(moved, None)]
    assert stalls(watch, STALLED_AFTER_S + 4, moved) == []


def test_who_looks_late_knows_for_how_long_a_report_holds() -> None:
    watch = StalledPartitions()
    assert list(watch.check([WAITING], 5.0, lambda _: STALLED_AFTER_S)) == [Stall(WAITING, STALLED_AFTER_S)]
    assert list(watch.check([replace(WAITING, position=42)], 6.0, lambda _: 99.0)) == [
        Stall(replace(WAITING, position=42), None)
    ]
    assert list(StalledPartitions().check([replace(WAITING, lag=0)], 5.0, lambda _: 99.0)) == []


@pytest.mark.parametrize(
    "report",
    [replace(WAITING, lag=0), replace(WAITING, lag=None), replace(WAITING, error="the target is full")],
)
def test_a_partition_without_lag_or_with_an_error_is_not_stalled(report: PartitionProgress) -> None:
    watch = StalledPartitions()
    assert stalls(watch, 0.0, report) == stalls(watch, STALLED_AFTER_S, report) == []


def test_a_partition_without_a_position_can_stall() -> None:
    watch, begun = StalledPartitions(), replace(WAITING, position=None)
    assert stalls(watch, 0.0, begun) == []
    assert stalls(watch, STALLED_AFTER_S, begun) == [Stall(begun, STALLED_AFTER_S)]


def test_partitions_stall_independently() -> None:
    watch, other = StalledPartitions(), replace(WAITING, source=TopicPartition("other", 0))
    stalls(watch, 0.0, WAITING)
    stalls(watch, 30.0, WAITING, other)
    assert stalls(watch, STALLED_AFTER_S, WAITING, other) == [Stall(WAITING, STALLED_AFTER_S)]
    assert stalls(watch, STALLED_AFTER_S + 30, WAITING, other) == [Stall(other, STALLED_AFTER_S)]


def reports(job_epoch: int, count: int) -> list[PartitionProgress]:
    return [
        replace(IDLE, job_epoch=job_epoch, source=TopicPartition("orders", number)) for number in range(count)
    ]


class SilenceWatch:
    def __init__(self) -> None:
        self._silent = SilentPartitions()

    def check(
        self, now: float, job_epoch: JobEpoch, reported: Collection[PartitionProgress]
    ) -> list[Silence]:
        return list(self._silent.check([job_epoch], reported, now))


def test_silence_is_reported_once_after_the_time_limit() -> None:
    watch, two = SilenceWatch(), reports(2, 2)
    assert watch.check(0.0, SECOND, two) == []
    assert watch.check(SILENT_AFTER_S - 0.1, SECOND, two) == []
    assert watch.check(SILENT_AFTER_S, SECOND, two) == [Silence(SECOND, 1)]
    assert watch.check(SILENT_AFTER_S + 1, SECOND, two) == []


def test_the_end_of_a_silence_is_reported() -> None:
    watch = SilenceWatch()
    watch.check(0.0, SECOND, [])
    assert watch.check(SILENT_AFTER_S, SECOND, []) == [Silence(SECOND, 3)]
    assert watch.check(SILENT_AFTER_S + 1, SECOND, reports(2, 3)) == [Silence(SECOND, 0)]
    assert watch.check(SILENT_AFTER_S + 2, SECOND, reports(2, 3)) == []


def test_reports_of_an_older_job_epoch_do_not_count() -> None:
    watch = SilenceWatch()
    watch.check(0.0, SECOND, reports(1, 3))
    assert watch.check(SILENT_AFTER_S, SECOND, reports(1, 3)) == [Silence(SECOND, 3)]


def test_a_stopped_copy_job_is_not_silent() -> None:
    watch, stopped = SilenceWatch(), JobEpoch(IDLE.connector, 2, partitions=3, stopped=True)
    watch.check(0.0, stopped, [])
    assert watch.check(SILENT_AFTER_S, stopped, []) == []


def test_the_time_limit_starts_again_with_each_copy_job() -> None:
    watch, third = SilenceWatch(), JobEpoch(IDLE.connector, 3, partitions=3)
    watch.check(0.0, SECOND, [])
    assert watch.check(SILENT_AFTER_S, third, []) == []
    assert watch.check(2 * SILENT_AFTER_S, third, []) == [Silence(third, 3)]


def test_a_partition_of_a_throttled_task_waits_for_its_turn() -> None:
    watch = StalledPartitions()
    for now in (0.0, 2 * STALLED_AFTER_S):
        assert list(watch.check([WAITING], now, throttled={WAITING.task})) == []
    assert stalls(watch, 2 * STALLED_AFTER_S + 1, WAITING) == []
    assert len(stalls(watch, 3 * STALLED_AFTER_S + 1, WAITING)) == 1
