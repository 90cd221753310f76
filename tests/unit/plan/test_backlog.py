"""The copy rate that a plan measures from progress records of 100 bytes per record, one second apart."""

from dataclasses import replace

from sparkmirror.plan.backlog import measured_rate
from sparkmirror.storage.progress import PartitionProgress
from tests.support.progress_records import progress


def series(
    partition: str, counts: list[int], lag: int | None, every_s: float = 1.0
) -> list[PartitionProgress]:
    return [
        progress(partition, records=count, lag=lag, at=1000.0 + second * every_s)
        for second, count in enumerate(counts)
    ]


def test_partitions_add_up_while_they_are_behind() -> None:
    reports = [*series("a-0", [0, 10, 20, 30], 1000), *series("b-0", [0, 30, 60, 90], 1000)]
    assert measured_rate(reports) == 4000.0


def test_a_typical_second_counts() -> None:
    assert measured_rate(series("a-0", [0, 10, 20, 21, 31, 41], 1000)) == 1000.0


def test_a_partition_that_keeps_up_gives_no_rate() -> None:
    assert measured_rate(series("a-0", [0, 10, 20, 30, 40], 9)) is None
    assert measured_rate(series("a-0", [0, 10, 20, 30, 40], None)) is None


def test_a_moment_is_not_enough() -> None:
    assert measured_rate(series("a-0", [0, 10, 20], 1000)) is None
    assert measured_rate([]) is None


def test_other_runs_and_long_gaps_are_no_measure() -> None:
    first = series("a-0", [0, 10, 20], 1000)
    again = [
        replace(report, job_epoch=2, updated_at=report.updated_at + 3)
        for report in series("a-0", [100, 110, 120], 1000)
    ]
    assert measured_rate([*first, *again]) == 1000.0
    assert measured_rate(series("a-0", [0, 10, 20, 30, 40], 1000, every_s=30.0)) is None
