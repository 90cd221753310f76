"""What people are told about a flow: each failure once, each recovery, and sums now and then."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.mirror.progress_watch import ProgressLog
from sparkmirror.storage.progress import PartitionProgress, PartitionState, ProgressReader
from tests.support.progress_records import IDLE

CONNECTOR = ConnectorName("MirrorSourceConnector")
FUTURE = 4e9
WELL = replace(IDLE, lag=0, updated_at=FUTURE)


class Reader(ProgressReader):
    """Of a progress topic that holds what it's told."""

    def __init__(self) -> None:
        self._job_epochs = {}
        self.reports: dict[tuple[ConnectorName, TopicPartition], PartitionProgress] = {}

    def hold(self, *reports: PartitionProgress) -> None:
        self.reports |= {(report.connector, report.source): report for report in reports}

    def poll(
        self,
        timeout_s: float = 0.0,  # noqa: ARG002 - nothing to wait for
    ) -> Mapping[tuple[ConnectorName, TopicPartition], PartitionProgress]:
        return self.reports


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def log(reader: Reader, caplog: pytest.LogCaptureFixture) -> ProgressLog:
    caplog.set_level("INFO")
    made = ProgressLog(Flow(Alias("a"), Alias("b")), ConnectionSettings((("b", 9092),)), IDLE.connector)
    made._reader = reader
    return made


def failed(state: PartitionState, error: str, partition: int = 0) -> PartitionProgress:
    return replace(WELL, source=TopicPartition("orders", partition), state=state, error=error)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return lines


def test_a_failure_is_told_once_and_its_end_too(
    log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(WELL)
    log._follow()
    assert told(caplog) == []
    reader.hold(failed(PartitionState.RETRYING, "gone"))
    log._follow()
    log._follow()
    assert told(caplog) == [("WARNING", "orders-0 RETRYING: gone")]
    reader.hold(failed(PartitionState.FAILED, "too large"))
    log._follow()
    assert told(caplog) == [("ERROR", "orders-0 FAILED: too large")]
    reader.hold(WELL)
    log._follow()
    log._follow()
    assert told(caplog) == [("INFO", "orders-0 is copied again")]


def test_what_was_reported_before_this_process_began_is_history(
    log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(replace(failed(PartitionState.FAILED, "long ago"), updated_at=log._began_at - 1))
    log._follow()
    assert told(caplog) == []


def test_a_notice_is_told_once(log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    reader.hold(replace(WELL, notice="records were lost", lost=3))
    log._follow()
    log._follow()
    assert told(caplog) == [("WARNING", "orders-0: records were lost")]
    reader.hold(replace(WELL, notice="and again", lost=5))
    log._follow()
    assert told(caplog) == [("WARNING", "orders-0: and again")]
    reader.hold(WELL)  # another task begins with none
    log._follow()
    assert told(caplog) == []


def test_thousands_of_failures_are_counted_not_named(
    log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(*(failed(PartitionState.RETRYING, "gone", number) for number in range(1000)))
    log._follow()
    lines = told(caplog)
    assert len(lines) == 21
    assert lines[-1] == ("WARNING", "… and 980 more partitions")


def test_the_summary_speaks_of_what_came_since_the_last(
    log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    other = replace(WELL, source=TopicPartition("orders", 1), lag=None)
    reader.hold(replace(WELL, records=30_000, bytes=60_000_000, lag=1234), other)
    log._follow()
    log._summarize()
    assert told(caplog) == [("INFO", "1,000 records/s, 2.0 MB/s, lag 1,234 records over 2 partitions")]
    log._follow()
    log._summarize()
    assert told(caplog) == []
    reader.hold(replace(WELL, records=30_030, bytes=60_003_000))
    log._follow()
    log._summarize()
    assert told(caplog) == [("INFO", "1 records/s, 0.0 MB/s, lag 0 records over 2 partitions")]


def test_another_generation_counts_from_nothing(
    log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(replace(WELL, records=900))
    log._follow()
    log._summarize()
    reader.hold(replace(WELL, records=300))
    log._follow()
    log._summarize()
    reader.hold(replace(WELL, records=600))
    log._follow()
    log._summarize()
    assert [line.split(",")[0] for _, line in told(caplog)] == ["30 records/s", "10 records/s"]


def test_what_other_connectors_report_is_not_ours(
    log: ProgressLog, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = replace(failed(PartitionState.FAILED, "too large", 1), connector=ConnectorName("other"))
    reader.hold(replace(WELL, records=1, target_topic="a.orders"), replace(theirs, records=1))
    log._follow()
    assert told(caplog) == []
    assert log.failed_tasks() == {}
    assert log.written_topics() == {"a.orders"}


def test_a_task_has_failed_while_one_of_its_partitions_has(log: ProgressLog, reader: Reader) -> None:
    reader.hold(WELL, replace(failed(PartitionState.FAILED, "too large", 1), task=1))
    log._follow()
    assert log.failed_tasks() == {1: "orders-1: too large"}
    reader.hold(replace(WELL, source=TopicPartition("orders", 1), task=1))
    log._follow()
    assert log.failed_tasks() == {}
