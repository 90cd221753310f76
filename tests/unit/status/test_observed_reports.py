from dataclasses import replace

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.metrics.looks import Motion
from sparkmirror.status.flow_lag import FlowLag, PartitionLag
from sparkmirror.status.flow_status import FlowStatus
from sparkmirror.status.observed_reports import ObservedReports
from sparkmirror.storage.progress import JobEpoch, PartitionState
from tests.support.progress_records import progress

FLOW = Flow(Alias("west"), Alias("east"))
CONNECTOR = ConnectorName("MirrorSourceConnector")
ORDERS = TopicPartition("orders", 0)


def seen(end: int | None, mirrored_to: int | None, records: int | None, why: str | None = None) -> FlowStatus:
    lag = PartitionLag(ORDERS, end, mirrored_to, records, why, target_topic="west.orders")
    return FlowStatus(FlowLag(FLOW, [lag]))


def test_records_of_javas_mirror_count_from_where_it_was_first_seen() -> None:
    reports = ObservedReports(CONNECTOR)
    (first,) = reports.of(seen(1000, 900, 100), 10.0)
    (second,) = reports.of(seen(1010, 960, 50), 70.0)
    assert (first.records, second.records) == (0, 60)
    assert (second.position, second.lag, second.target_topic) == (959, 50, "west.orders")
    assert second.state is PartitionState.RUNNING


def test_a_topic_that_begins_again_counts_from_its_beginning() -> None:
    reports = ObservedReports(CONNECTOR)
    reports.of(seen(1000, 900, 100), 10.0)
    (again,) = reports.of(seen(7, 5, 2), 70.0)
    assert again.records == 0


def test_what_is_unknown_is_no_number() -> None:
    (report,) = ObservedReports(CONNECTOR).of(seen(1000, None, None, "not begun"), 10.0)
    assert (report.position, report.lag, report.error) == (None, None, "not begun")


def test_motion_is_told_from_step_to_step_of_the_position() -> None:
    """Between two positions of Java's mirror, a minute apart, the lag only grows."""
    reports = ObservedReports(CONNECTOR)
    reports.of(seen(1000, 900, 100), 0.0)
    for at in range(1, 12):
        reports.of(seen(1000 + 10 * at, 900, 100 + 10 * at), 5.0 * at)
        assert reports.motion(ORDERS) is None
    reports.of(seen(1120, 1060, 60), 60.0)
    assert reports.motion(ORDERS) == Motion(60.0, 40)


def test_reports_of_this_mirrors_tasks_are_kept_with_the_lag_of_now() -> None:
    own = progress("orders-0", records=500, lag=0)
    job = JobEpoch(CONNECTOR, 1)
    status = replace(seen(700, 480, 220), job=job, reports={ORDERS: own})
    (report,) = ObservedReports(CONNECTOR).of(status, 10.0)
    assert (report.records, report.bytes, report.latency) == (own.records, own.bytes, own.latency)
    assert (report.position, report.lag) == (499, 200), "the report is newer than the stored position"


def test_reports_of_a_mirror_that_was_stopped_count_no_more() -> None:
    own = progress("orders-0", records=500, lag=0)
    stopped = JobEpoch(CONNECTOR, 1, stopped=True)
    status = replace(seen(700, 650, 50), job=stopped, reports={ORDERS: own})
    (report,) = ObservedReports(CONNECTOR).of(status, 10.0)
    assert (report.position, report.lag, report.bytes) == (649, 50, 0)
