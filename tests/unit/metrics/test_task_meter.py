from math import isnan

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.metrics.readings import Traffic
from sparkmirror.metrics.task_meter import TaskMeter
from sparkmirror.storage.progress import TaskLoad, TaskProgress, parse, parse_order

LOAD = TaskLoad(
    in_flight=5,
    commit_ms=4.0,
    fetches=10,
    fetch_ms=200.0,
    source_in=1000,
    source_out=100,
    source_connections=2,
    target_in=50,
    target_out=900,
    target_connections=3,
    buffer_total=64,
    buffer_used=24,
)


def report(load: TaskLoad, job_epoch: int = 1) -> TaskProgress:
    return TaskProgress(ConnectorName("c"), 0, job_epoch, load, 1000.0)


def test_a_report_survives_its_topic_and_is_no_order() -> None:
    record = report(LOAD).to_record()
    assert parse(record) == report(LOAD)
    assert parse_order(record) is None
    assert parse(LogRecord(record.key, b'{"load": {}, "generation": 1, "time": 0}')) is None


def test_a_task_has_what_it_reported_and_means_of_the_window() -> None:
    meter = TaskMeter()
    meter.take([report(LOAD)], 0.0)
    later = LOAD._replace(commit_ms=6.0, fetches=20, fetch_ms=600.0, in_flight=7)
    meter.take([report(later)], 1.0)
    (of,) = meter.readings(1, 2.0).values()
    assert (of.in_flight, of.source, of.target) == (7, Traffic(1000, 100, 2), Traffic(50, 900, 3))
    assert (of.commit.mean, of.commit.high, of.fetch.mean) == (5.0, 6.0, 30.0)
    assert (of.buffer_total, of.buffer_available) == (64, 40)
    assert isnan(meter.readings(1, 100.0)[0].commit.mean)


def test_bytes_grow_over_restarts_of_the_task() -> None:
    meter = TaskMeter()
    meter.take([report(LOAD)], 0.0)
    restarted = LOAD._replace(fetches=1, fetch_ms=5.0, source_in=10, target_out=20)
    meter.take([report(restarted, job_epoch=2)], 1.0)
    meter.take([report(restarted._replace(source_in=30), job_epoch=2)], 2.0)
    assert meter.readings(1, 2.0)[0].source == Traffic(1030, 200, 2)
    assert meter.readings(1, 2.0)[0].target.bytes_out == 920


def test_tasks_that_did_not_report_or_are_no_more_have_no_reading() -> None:
    meter = TaskMeter()
    meter.take([report(LOAD)], 0.0)
    assert list(meter.readings(3, 0.0)) == [0]
    assert meter.readings(0, 0.0) == {}


def test_a_task_is_throttled_as_it_reported_last() -> None:
    meter = TaskMeter()
    meter.take([report(LOAD)], 0.0)
    assert meter.throttled() == {0: (0.0, 0.0)}
    throttled = LOAD._replace(target_throttled_s=90.0, target_throttled=0.75)
    meter.take([report(throttled)], 1.0)
    assert meter.throttled() == {0: (0.0, 0.75)}
    assert meter.readings(1, 2.0)[0].target.throttled_s == 90.0
    assert parse(report(throttled).to_record()) == report(throttled)
