from collections.abc import Iterable
from dataclasses import replace

import pytest

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.mirror.load_meter import LoadMeter
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.support.progress_records import progress

HOT = TopicPartition("orders", 0)
WARM = TopicPartition("orders", 1)
QUIET = TopicPartition("orders", 2)
ASSIGNMENT: Assignment = ((HOT, QUIET), (WARM,))


def report(partition: TopicPartition, records: int, *, lag: int = 0, job_epoch: int = 1) -> PartitionProgress:
    """100 bytes to each record."""
    return replace(progress(str(partition), records=records, lag=lag), job_epoch=job_epoch)


def metered(*looks: Iterable[PartitionProgress], assignment: Assignment = ASSIGNMENT) -> LoadMeter:
    """Return a meter that has looked every 10 s."""
    meter = LoadMeter()
    for number, reports in enumerate(looks):
        meter.take(assignment, reports, 1000.0 + 10 * number)
    return meter


def test_no_rate_is_known_before_the_second_report() -> None:
    """A task's first count may have taken it hours."""
    meter = metered([report(HOT, 1_000_000)])
    assert meter.load(ASSIGNMENT) == {}
    meter.take(ASSIGNMENT, [report(HOT, 1_010_000)], 1010.0)
    assert meter.load(ASSIGNMENT) == {HOT: 100_000}


def test_a_partition_without_a_report_copied_nothing() -> None:
    """Only what changed is reported."""
    first = [report(HOT, 0), report(QUIET, 7)]
    meter = metered(first, [report(HOT, 10_000)], [report(HOT, 20_000)])
    assert meter.rates == {HOT: pytest.approx(100_000), QUIET: 0.0}


def test_a_burst_is_not_believed_at_once() -> None:
    looks = [[report(HOT, 10_000 * n)] for n in range(12)]
    (rate,) = metered(*looks, [report(HOT, 210_000)]).rates.values()
    assert 100_000 < rate < 400_000
    (rate,) = metered(*looks, *([report(HOT, 110_000 + 100_000 * n)] for n in range(1, 12))).rates.values()
    assert rate == pytest.approx(1_000_000, rel=0.05)


def test_at_first_all_that_was_seen_counts_alike() -> None:
    """A first look that met no report, or a backlog that was being made up for, is one of several."""
    (rate,) = metered([report(HOT, 0)], [], [report(HOT, 10_000)]).rates.values()
    assert rate == pytest.approx(50_000, rel=0.2)
    (rate,) = metered([report(HOT, 0)], [report(HOT, 10_000)], []).rates.values()
    assert rate == pytest.approx(50_000, rel=0.2)


@pytest.mark.parametrize(("records", "job_epoch"), [(10_000, 2), (60_000, 2), (10_000, 1)])
def test_a_task_that_started_again_counts_from_0(records: int, job_epoch: int) -> None:
    """A task starts again in a new copy job, or in the same after Spark started it again."""
    looks = [[report(HOT, 0)], [report(HOT, 50_000)], [report(HOT, records, job_epoch=job_epoch)]]
    (rate,) = metered(*looks).rates.values()
    expected = 100 * records / 10
    assert min(500_000, expected) <= rate <= max(500_000, expected)
    assert rate == pytest.approx(500_000 + (expected - 500_000) * 0.583, rel=0.01)


def test_load_of_a_partition_behind_is_bounded_by_its_task() -> None:
    looks = [
        [report(HOT, 0), report(QUIET, 0), report(WARM, 0)],
        [report(HOT, 10_000, lag=10_000_000), report(QUIET, 5_000), report(WARM, 1_000, lag=600)],
    ]
    meter = metered(*looks)
    assert meter.load(ASSIGNMENT) == {HOT: 150_000, QUIET: 50_000, WARM: 10_000}
    alone: Assignment = ((HOT,), (QUIET, WARM))
    assert meter.load(alone) == {HOT: 100_000, QUIET: 50_000, WARM: 11_000}
    assert [meter.is_behind(partition) for partition in (HOT, QUIET, WARM)] == [True, False, False]


def test_an_error_explains_a_backlog() -> None:
    """A partition that the target refuses would copy no more if it were alone."""
    failed = replace(report(HOT, 10, lag=10_000_000), state=PartitionState.FAILED, error="refused")
    meter = metered([report(HOT, 10)], [failed])
    assert meter.load(ASSIGNMENT) == {HOT: 0}
    assert not meter.is_behind(HOT)


def test_a_backlog_of_unknown_size_counts_all_the_same() -> None:
    meter = metered([report(HOT, 0)], [report(HOT, 0, lag=1_000_000)])
    assert meter.is_behind(HOT)


def test_partitions_that_are_not_copied_any_more_are_forgotten() -> None:
    meter = metered([report(HOT, 0), report(WARM, 0)], [report(HOT, 1), report(WARM, 1)])
    meter.take(((WARM,),), [report(HOT, 2)], 1030.0)
    assert set(meter.rates) == {WARM}
    assert not meter.is_behind(HOT)
