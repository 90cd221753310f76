from dataclasses import replace

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.metrics.looks import Motion
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.status.partition_reports import DELETED, GonePartitions, PartitionReports
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState
from tests.support.progress_records import IDLE, progress

CONNECTOR = ConnectorName("MirrorSourceConnector")
ORDERS = TopicPartition("orders", 0)


def found(mirrored_to: int | None, lag: int | None, why: str | None = None, at: float = 10.0) -> FlowLook:
    position = None if mirrored_to is None else mirrored_to - 1
    return FlowLook(
        [
            replace(
                IDLE,
                source=ORDERS,
                target_topic="west.orders",
                position=position,
                lag=lag,
                error=why,
                updated_at=at,
            )
        ],
        {ORDERS: (mirrored_to or 0) + (lag or 0)},
    )


def test_records_of_javas_mirror_count_from_where_it_was_first_seen() -> None:
    reports = PartitionReports()
    (first,) = reports.of(found(900, 100))
    (second,) = reports.of(found(960, 50, at=70.0))
    assert (first.records, second.records) == (0, 60)
    assert (second.position, second.lag, second.target_topic) == (959, 50, "west.orders")
    assert second.state is PartitionState.RUNNING


def test_a_topic_that_begins_again_counts_from_its_beginning() -> None:
    reports = PartitionReports()
    reports.of(found(900, 100))
    (again,) = reports.of(found(5, 2, at=70.0))
    assert again.records == 0


def test_what_is_unknown_is_no_number() -> None:
    (report,) = PartitionReports().of(found(None, None, "not begun"))
    assert (report.position, report.lag, report.error) == (None, None, "not begun")


def test_motion_is_told_from_step_to_step_of_the_position() -> None:
    """Between two positions of Java's mirror, a minute apart, the lag only grows."""
    reports = PartitionReports()
    reports.of(found(900, 100, at=0.0))
    for at in range(1, 12):
        reports.of(found(900, 100 + 10 * at, at=5.0 * at))
        assert reports.motion(ORDERS) is None
    reports.of(found(1060, 60, at=60.0))
    assert reports.motion(ORDERS) == Motion(60.0, 40)


def test_reports_of_this_mirrors_tasks_are_kept_with_the_lag_of_now() -> None:
    own = progress("orders-0", records=500, lag=0)
    look = replace(found(480, 220), job=JobEpoch(CONNECTOR, 1), reports={ORDERS: own})
    (report,) = PartitionReports().of(look)
    assert (report.records, report.bytes, report.latency) == (own.records, own.bytes, own.latency)
    assert (report.position, report.lag) == (499, 200), "the report is newer than the stored position"


def test_the_reason_of_an_unknown_lag_is_in_the_report_of_a_task_without_an_error() -> None:
    own = progress("orders-0", records=500, lag=0)
    look = replace(found(480, None, "no leader"), reports={ORDERS: own})
    (report,) = PartitionReports().of(look)
    assert (report.lag, report.error) == (None, "no leader")
    failing = replace(own, error="no right", state=PartitionState.FAILED)
    (report,) = PartitionReports().of(replace(look, reports={ORDERS: failing}))
    assert report.error == "no right"


def test_reports_of_a_mirror_that_was_stopped_count_no_more() -> None:
    own = progress("orders-0", records=500, lag=0)
    stopped = JobEpoch(CONNECTOR, 1, stopped=True)
    (report,) = PartitionReports().of(replace(found(650, 50), job=stopped, reports={ORDERS: own}))
    assert (report.position, report.lag, report.bytes) == (649, 50, 0)


def report(topic: str) -> PartitionProgress:
    return replace(IDLE, source=TopicPartition(topic, 0), target_topic=f"a.{topic}", position=9, lag=0)


def test_a_topic_that_is_deleted_is_told_until_the_mirror_has_left_it_out() -> None:
    gone = GonePartitions(600.0)
    assert gone.of([report("orders"), report("clicks")], 0.0) == []
    (clicks,) = gone.of([report("orders")], 5.0)
    assert (clicks.source.topic, clicks.lag, clicks.error) == ("clicks", None, DELETED)
    assert clicks.target_topic == "a.clicks"
    assert len(gone.of([report("orders")], 599.0)) == 1
    assert gone.of([report("orders")], 600.0) == []


def test_a_topic_that_is_there_again_is_not_gone() -> None:
    gone = GonePartitions(600.0)
    gone.of([report("orders")], 0.0)
    assert gone.of([], 5.0) != []
    assert gone.of([report("orders")], 10.0) == []
