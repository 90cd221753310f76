from collections.abc import Iterable
from dataclasses import replace
from math import isnan

import pytest

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram, bucket_of
from sparkmirror.metrics.looks import Motion, PartitionLook, SourceLook
from sparkmirror.metrics.page import Metrics
from sparkmirror.metrics.readings import PartitionReading, SourceReading
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.metrics.stalls import Stall
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState, TaskLoad, TaskProgress
from tests.support.progress_records import IDLE, progress

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
DEALT: Assignment = ((ORDERS,), (OTHER,))
MEASURED = TaskLoad(0, None, *[0] * 10)
OF = (Flow(Alias("source"), Alias("target")), ConnectorName("MirrorSourceConnector"))


def read(meter: SourceMeter, now: float = 0.0, assigned: Assignment | None = DEALT) -> SourceReading:
    tasks = dict.fromkeys(range(len(assigned or ())), "running")
    return meter.reading(meter.look(SourceLook(*OF, "source", tasks=tasks), assigned, now))


def metered(*looks: tuple[float, PartitionProgress]) -> SourceMeter:
    meter = SourceMeter()
    for now, report in looks:
        meter.take([report], None, now)
    return meter


def partition(meter: SourceMeter, now: float) -> PartitionReading:
    (reading,) = read(meter, now).partitions
    return reading


def report(records: int, *, job_epoch: int = 1, lag: int = 0) -> PartitionProgress:
    """100 bytes a record."""
    return replace(progress("orders-0", records=records, lag=lag), job_epoch=job_epoch)


def test_a_repeated_report_counts_once() -> None:
    last = report(500)
    meter = metered((0.0, report(100)), (1.0, last), (2.0, last), (3.0, last))
    assert (partition(meter, 3.0).records, partition(meter, 3.0).bytes) == (500, 50_000)


def test_counts_continue_when_tasks_restart() -> None:
    meter = metered((0.0, report(500)), (1.0, report(20, job_epoch=2)), (2.0, report(50, job_epoch=2)))
    meter.take([report(10, job_epoch=2)], None, 3.0)  # Spark ran the task again
    assert partition(meter, 3.0).records == 560


def test_what_was_copied_before_the_first_look_is_in_no_window() -> None:
    meter = SourceMeter(counts_from_first_look=True)
    meter.take([report(5000)], None, 0.0)
    assert partition(meter, 0.0).record_rate == 0
    assert isnan(partition(meter, 0.0).latency.mean)
    meter.take([report(5060)], None, 5.0)
    assert partition(meter, 5.0).record_rate == pytest.approx(60 / 30)
    assert partition(meter, 5.0).records == 5060
    meter.take([report(30, job_epoch=2)], None, 10.0)
    assert partition(meter, 10.0).record_rate == pytest.approx(90 / 35)


def test_rates_cover_the_last_windows_across_job_epochs() -> None:
    """At least one whole window: too low rather than too high at the start."""
    meter = metered((0.0, report(300)))
    assert partition(meter, 0.0).record_rate == pytest.approx(10.0)
    assert partition(meter, 29.0).record_rate == pytest.approx(300 / 59)
    meter.take([report(600, job_epoch=1)], None, 40.0)
    meter.take([report(100, job_epoch=2)], None, 50.0)
    assert partition(meter, 50.0).record_rate == pytest.approx(700 / 50)
    assert partition(meter, 65.0).record_rate == pytest.approx(400 / 55)
    assert partition(meter, 65.0).byte_rate == pytest.approx(40_000 / 55)
    assert partition(meter, 101.0).record_rate == 0.0
    assert partition(meter, 101.0).records == 700


def test_a_report_without_new_records_starts_no_window() -> None:
    meter = metered((0.0, report(0)), (100.0, report(0, lag=7)), (101.0, report(60)))
    assert partition(meter, 101.0).record_rate == pytest.approx(2.0)


def test_latencies_are_those_of_the_windows_and_the_last_one_stays() -> None:
    slow, quick = bucket_of(1000.0), bucket_of(10.0)
    first = replace(report(10), latency=LatencyHistogram({slow: 10}))
    second = replace(report(40), latency=LatencyHistogram({slow: 10, quick: 30}))
    meter = metered((0.0, first), (1.0, second))
    latency = partition(meter, 1.0).latency
    assert latency.low == pytest.approx(10.0, rel=0.08)
    assert latency.high == pytest.approx(1000.0, rel=0.08)
    assert latency.mean == pytest.approx(257.5, rel=0.08)
    assert latency.last == pytest.approx(10.0, rel=0.08)
    later = partition(meter, 100.0).latency
    assert isnan(later.mean)
    assert later.last == latency.last


def test_a_partition_without_records_has_no_latency() -> None:
    assert isnan(partition(metered((0.0, IDLE)), 0.0).latency.high)
    assert partition(metered((0.0, IDLE)), 0.0).latency.last == 0.0


def test_lag_in_records_and_in_time() -> None:
    meter = metered((0.0, report(100)), (10.0, report(100, lag=5)))
    behind = partition(meter, 12.0)
    assert (behind.lag, behind.lag_s) == (5, 2.0)
    unknown = partition(metered((0.0, IDLE)), 4.0)
    assert (unknown.lag, unknown.lag_s) == (None, None)


def test_while_no_reports_can_be_read_the_lag_grows_by_the_clock_and_no_state_is_known() -> None:
    """The target is away. Reports that say nothing new are read all the same when a mirror is idle."""
    last = report(100)
    meter = metered((0.0, last), (30.0, last))
    idle = partition(meter, 34.0)
    assert (idle.lag, idle.lag_s, read(meter, 34.0).states["running"]) == (0, 0.0, 1)
    cut_off = partition(meter, 50.0)
    assert (cut_off.lag, cut_off.lag_s) == (None, 20.0)
    assert {state: count for state, count in read(meter, 50.0).states.items() if count} == {"unknown": 2}
    meter.take([last], None, 51.0)
    assert (partition(meter, 52.0).lag, partition(meter, 52.0).lag_s) == (0, 0.0)


def test_while_a_partition_reports_an_error_its_lag_is_never_0() -> None:
    """The source is away, and whether it has new records is not known."""
    failing = replace(report(100), state=PartitionState.RETRYING, error="no answer")
    meter = metered((0.0, report(100)), (10.0, failing), (40.0, failing))
    assert (partition(meter, 40.0).lag, partition(meter, 40.0).lag_s) == (None, 30.0)
    meter.take([report(100)], None, 41.0)
    assert (partition(meter, 41.0).lag, partition(meter, 41.0).lag_s) == (0, 0.0)


def test_an_error_leaves_a_known_lag() -> None:
    failing = replace(report(100, lag=7), state=PartitionState.RETRYING, error="no answer")
    meter = metered((0.0, report(100, lag=0)), (10.0, replace(report(100), lag=7)), (20.0, failing))
    assert (partition(meter, 22.0).lag, partition(meter, 22.0).lag_s) == (7, 12.0)


def test_lag_of_an_older_backlog_is_the_last_records_age() -> None:
    age_ms = 3_600_000.0
    old = replace(report(10, lag=1000), latency=LatencyHistogram({bucket_of(age_ms): 10}))
    assert partition(metered((0.0, old)), 5.0).lag_s == pytest.approx(3605.0, rel=0.08)


def test_unassigned_partitions_are_left_out_but_their_incidents_count() -> None:
    lost = replace(report(5), lost=3, incidents={"records-lost": 1})
    meter = metered((0.0, lost))
    meter.take([lost, progress("orders-1", records=2)], None, 1.0)
    reading = read(meter, 1.0, assigned=((OTHER,),))
    assert [it.source for it in reading.partitions] == [OTHER]
    assert reading.partitions[0].task == 0
    assert (reading.lost, reading.incidents) == (3, {"records-lost": 1})
    meter.take([replace(lost, job_epoch=2)], None, 2.0)
    assert (read(meter, 2.0).lost, read(meter, 2.0).incidents) == (6, {"records-lost": 2})


def test_without_tasks_there_are_no_partitions() -> None:
    reading = read(metered((0.0, report(5))), assigned=None)
    assert (reading.partitions, reading.tasks) == ([], {})


def test_states_and_changes_to_them_are_counted() -> None:
    def states(*entered: PartitionState) -> Iterable[PartitionProgress]:
        return (replace(report(0), state=state, error=str(number)) for number, state in enumerate(entered))

    running, _standby, retrying, failed = PartitionState
    meter = SourceMeter()
    for it in states(running, retrying, retrying, running, retrying, failed, failed):
        meter.take([it], None, 0.0)
    reading = read(meter)
    assert (reading.retries, reading.failures) == (2, 1)
    counts = {"running": 0, "standby": 0, "retrying": 0, "failed": 1, "silent": 1, "unknown": 0}
    assert reading.states == counts


def test_a_partition_whose_new_task_does_not_report_is_silent() -> None:
    meter = SourceMeter()
    newest = JobEpoch(OF[1], 2)
    meter.take([report(5), replace(progress("orders-1"), job_epoch=2)], newest, 0.0)
    counts = {"running": 1, "standby": 0, "retrying": 0, "failed": 0, "silent": 1, "unknown": 0}
    assert read(meter).states == counts


def test_what_a_task_reported_last_holds_no_longer_when_it_reports_nothing() -> None:
    """It is frozen, or can't write: it would report what it measures every 10 s."""
    meter = metered((0.0, report(10)))
    meter.take_tasks([TaskProgress(OF[1], 0, 1, MEASURED, 1.5)], 0.0)

    def at(now: float) -> tuple[bool, int | None, int]:
        meter.take([report(10)], JobEpoch(OF[1], 1), now)
        is_silent = partition_look(meter, now).is_silent
        return is_silent, partition(meter, now).lag, read(meter, now).states["silent"]

    assert at(25.0) == (False, 0, 1)
    assert at(26.0) == (True, None, 2)
    meter.take_tasks([TaskProgress(OF[1], 0, 1, MEASURED, 2.5)], 27.0)
    assert at(27.0) == (False, 0, 1)


def test_a_reading_of_reports_makes_a_page() -> None:
    readings = [read(metered((0.0, report(10))))]
    _, page = Metrics(lambda: readings).page()
    assert b"sparkmirror_lag_records{" in page
    assert b"kafka_consumer_fetch_manager_records_lag" in page
    assert b'task="0"' in page


def test_stalls_are_counted_and_present_ones_listed() -> None:
    meter = metered((0.0, report(5)))
    meter.take_stalls([Stall(report(5), 61.0)])
    assert (read(meter).stalls, read(meter).stalled) == (1, 1)
    meter.take_stalls([Stall(report(5), None)])
    assert (read(meter).stalls, read(meter).stalled) == (1, 0)


def looked(meter: SourceMeter, now: float, assigned: Assignment | None = DEALT) -> SourceLook:
    return meter.look(SourceLook(*OF, "source"), assigned, now)


def test_a_look_has_every_assigned_partition_and_what_was_reported() -> None:
    last = report(500)
    look = looked(metered((0.0, last)), 4.0)
    assert look.partitions is not None
    known, unknown = look.partitions
    assert (known.source, known.task, known.report, known.lag_s) == (ORDERS, 0, last, 0.0)
    assert (known.is_silent, known.quiet_since, look.now, look.report_age_s) == (False, 0.0, 4.0, 4.0)
    assert unknown == PartitionLook(OTHER, 1)
    assert looked(SourceMeter(), 0.0, None).partitions is None


def test_after_partitions_were_assigned_again_a_look_has_their_last_reports() -> None:
    last = report(500)
    meter = metered((0.0, last))
    looked(meter, 1.0)
    look = looked(meter, 2.0, ((OTHER,), (ORDERS,)))
    assert look.partitions is not None
    assert [(it.task, it.report) for it in look.partitions] == [(0, None), (1, last)]


def test_a_look_tells_how_the_lag_moved_and_since_when_the_source_is_quiet() -> None:
    meter = metered((0.0, report(100, lag=900)), (10.0, report(400, lag=600)), (20.0, report(500, lag=600)))
    look = partition_look(meter, 24.0)
    assert (look.motion, look.quiet_since) == (Motion(24.0, 300), 20.0)
    meter.take([report(1100, lag=0)], None, 30.0)
    assert partition_look(meter, 30.0).motion is None


def partition_look(meter: SourceMeter, now: float) -> PartitionLook:
    partitions = looked(meter, now).partitions
    assert partitions is not None
    return partitions[0]


def test_while_an_error_is_reported_the_lag_of_a_look_grows() -> None:
    meter = metered((0.0, report(100)), (5.0, replace(report(100), error="away")))
    look = partition_look(meter, 12.0)
    assert (look.error_for_s, look.lag_s) == (7.0, 7.0)


def test_a_look_has_an_hour_of_points_and_counts_over_restarts() -> None:
    meter = metered((0.0, report(500)), (10.0, report(20, job_epoch=2)), (20.0, report(70, job_epoch=2)))
    assert [(point.ago_s, point.record_rate, point.lag) for point in looked(meter, 20.0).history] == [
        (10.0, 2.0, 0),
        (0.0, 5.0, 0),
    ]


def test_the_recent_latencies_of_a_look_are_those_of_the_windows() -> None:
    look = partition_look(metered((0.0, report(500))), 1.0)
    assert look.latencies is not None
    assert look.latencies.recent.counts == {0: 500}
    assert look.record_rate == pytest.approx(500 / 31)
    assert partition_look(metered((0.0, report(500))), 100.0).latencies is None
