"""Log lines about a flow: each failure once, each recovery, and regular summaries."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import ClusterLook
from sparkmirror.mirror.task_progress import ProgressWatch, lag_line, stall_line
from sparkmirror.storage.progress import (
    JobEpoch,
    PartitionProgress,
    PartitionState,
    TaskLoad,
    TaskProgress,
    parse,
)
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.storage.troubles import Troubles
from tests.support.progress_records import IDLE

CONNECTOR = ConnectorName("MirrorSourceConnector")
FUTURE = 4e9
AN_HOUR_AGO = time.time() - 3600
WELL = replace(IDLE, lag=0, updated_at=FUTURE)


class Reader(ProgressReader):
    """Reads a progress topic that holds these reports."""

    def __init__(self) -> None:
        super().__init__(ConnectionSettings((("b", 9092),)), "progress")
        self.reports: dict[tuple[ConnectorName, TopicPartition], PartitionProgress] = {}
        self.measured: dict[tuple[ConnectorName, int], TaskProgress] = {}
        self.newest: dict[ConnectorName, JobEpoch] = {}

    def hold(self, *reports: PartitionProgress) -> None:
        self.reports |= {(report.connector, report.source): report for report in reports}

    def poll(
        self,
        timeout_s: float = 0.0,  # noqa: ARG002 - nothing to wait for
    ) -> Mapping[tuple[ConnectorName, TopicPartition], PartitionProgress]:
        return self.reports

    @property
    def tasks(self) -> Mapping[tuple[ConnectorName, int], TaskProgress]:
        return self.measured

    @property
    def job_epochs(self) -> Mapping[ConnectorName, JobEpoch]:
        return self.newest


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def log(reader: Reader, caplog: pytest.LogCaptureFixture) -> ProgressWatch:
    caplog.set_level("INFO")
    return ProgressWatch(Flow(Alias("a"), Alias("b")), reader, IDLE.connector)


def failed(state: PartitionState, error: str, partition: int = 0) -> PartitionProgress:
    return replace(WELL, source=TopicPartition("orders", partition), state=state, error=error)


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return lines


def test_a_stalled_partition_is_logged_with_offset_time_and_lag() -> None:
    report = replace(WELL, source=TopicPartition("orders", 3), position=4711, lag=1204)
    line = "orders-3: stalled at offset 4711 for 60 s, 1,204 records behind, no error reported"
    assert stall_line(report, 60.4) == line


def test_a_failure_is_logged_once_and_its_end_too(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(WELL)
    log.follow()
    assert logged(caplog) == []
    reader.hold(failed(PartitionState.RETRYING, "gone"))
    log.follow()
    log.follow()
    assert logged(caplog) == [("WARNING", "orders-0 RETRYING: gone")]
    reader.hold(failed(PartitionState.FAILED, "too large"))
    log.follow()
    assert logged(caplog) == [("ERROR", "orders-0 FAILED: too large")]
    reader.hold(WELL)
    log.follow()
    log.follow()
    assert logged(caplog) == [("INFO", "orders-0 is copied again")]


def test_reports_from_before_this_process_are_ignored(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(replace(failed(PartitionState.FAILED, "long ago"), updated_at=AN_HOUR_AGO))
    log.follow()
    assert logged(caplog) == []


def test_the_last_reports_of_a_promoted_topic_count_no_more(reader: Reader) -> None:
    flow, promoted = Flow(Alias("a"), Alias("b")), {"orders"}
    watch = ProgressWatch(flow, reader, IDLE.connector, is_promoted=promoted.__contains__)
    behind = replace(WELL, source=TopicPartition("orders", 0), lag=70)
    well = replace(WELL, source=TopicPartition("pages", 0), lag=0)
    reader.hold(behind, well)
    watch.follow()
    assert list(watch.reports()) == [well]
    promoted.clear()
    watch.follow()
    assert list(watch.reports()) == [behind, well]


def test_a_notice_is_logged_once(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(replace(WELL, notice="records were lost", lost=3))
    log.follow()
    log.follow()
    assert logged(caplog) == [("WARNING", "orders-0: records were lost")]
    reader.hold(replace(WELL, notice="and again", lost=5))
    log.follow()
    assert logged(caplog) == [("WARNING", "orders-0: and again")]
    reader.hold(WELL)  # another task begins with none
    log.follow()
    assert logged(caplog) == []


def test_thousands_of_failures_with_one_reason_are_one_line_and_their_end_is_another(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    fenced = "Fetch orders-{} on b:9092: FENCED_LEADER_EPOCH"
    reports = [failed(PartitionState.RETRYING, fenced.format(number), number) for number in range(5000)]
    reader.hold(*reports)
    log.follow()
    assert logged(caplog) == [
        (
            "WARNING",
            "orders-0 and 4,999 more partitions RETRYING: Fetch orders-0 on b:9092: FENCED_LEADER_EPOCH",
        )
    ]
    log.follow()
    assert logged(caplog) == []
    reader.hold(*(replace(WELL, source=it.source) for it in reports[1:]))
    log.follow()
    assert logged(caplog) == [("INFO", "orders-1 and 4,998 more partitions are copied again")]


def test_each_reason_has_a_line_up_to_five(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    words = ("no", "not", "never", "nowhere", "none", "nobody", "nothing")
    reader.hold(*(failed(PartitionState.FAILED, word, number) for number, word in enumerate(words)))
    log.follow()
    lines = logged(caplog)
    assert lines[0] == ("ERROR", "orders-0 FAILED: no")
    assert len(lines) == 6
    assert lines[-1] == ("WARNING", "… and 2 more partitions")


@pytest.mark.parametrize(
    ("away", "reports", "line"),
    [
        (None, [WELL, WELL], "lag 0 records over 2 partitions"),
        (
            None,
            [failed(PartitionState.FAILED, "no"), replace(WELL, lag=7)],
            "lag 7 records over 2 partitions, unknown for 1 of them (1 failed)",
        ),
        (None, [failed(PartitionState.FAILED, "no")] * 2, "lag unknown of 2 partitions (2 failed)"),
        (ClusterLook(Alias("source"), False), [WELL], "lag unknown of 1 partition (source away)"),
        (None, [failed(PartitionState.STANDBY, "waits")] * 2, "2 partitions standby until a failback"),
        (
            None,
            [WELL, failed(PartitionState.STANDBY, "waits")],
            "lag 0 records over 1 partition, 1 partition standby until a failback",
        ),
    ],
)
def test_an_unknown_lag_is_in_no_sum_and_has_its_reason(
    away: ClusterLook | None, reports: list[PartitionProgress], line: str
) -> None:
    assert lag_line(reports, away) == line


def test_partitions_whose_new_task_does_not_report_have_no_lag_of_0(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    behind = replace(WELL, source=TopicPartition("orders", 1), lag=7)
    newer = replace(WELL, source=TopicPartition("orders", 2), job_epoch=2)
    reader.newest = {IDLE.connector: JobEpoch(IDLE.connector, 2, 3)}
    reader.hold(replace(WELL, job_epoch=1), replace(behind, job_epoch=1), newer)
    log.follow()
    caplog.clear()
    log.summarize()
    assert logged(caplog)[-1] == (
        "INFO",
        "nothing was copied, lag 7 records over 3 partitions, unknown for 1 of them (1 silent)",
    )


def test_the_summary_says_since_when_the_source_is_away(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    away = ClusterLook(Alias("source"), is_up=False, away_for_s=60.0)
    watch = ProgressWatch(Flow(Alias("a"), Alias("b")), reader, IDLE.connector, clusters=lambda: [away])
    reader.hold(WELL, replace(WELL, source=TopicPartition("orders", 1)))
    watch.follow()
    watch.summarize()
    ((level, line),) = logged(caplog)
    since = datetime.now().astimezone() - timedelta(seconds=60)
    told = {f"{since + timedelta(seconds=late):%H:%M:%S}" for late in range(-3, 1)}
    before, _, after = line.partition(" since ")
    assert (level, before) == ("INFO", "nothing was copied, lag unknown of 2 partitions (source away")
    assert after.removesuffix(")") in told


def test_topics_that_are_not_copied_at_all_have_no_known_lag(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    troubles = Troubles(logging.getLogger("x"))
    watch = ProgressWatch(Flow(Alias("a"), Alias("b")), reader, IDLE.connector, troubles=troubles)
    cause = Cause.of(TroubleWord.NOT_CREATED, Subject.TOPIC, "a.bills", "no")
    troubles.tell("topics", [Trouble(cause, "bills", "a.bills", partitions=(0, 4))])
    reader.hold(WELL)
    watch.follow()
    caplog.clear()
    watch.summarize()
    assert logged(caplog) == [
        (
            "INFO",
            "nothing was copied, lag 0 records over 5 partitions, unknown for 4 of them (4 not created)",
        )
    ]


def test_the_summary_counts_records_since_the_last_one(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    other = replace(WELL, source=TopicPartition("orders", 1), lag=None)
    behind = "lag 1,234 records over 2 partitions, unknown for 1 of them"
    reader.hold(replace(WELL, records=30_000, bytes=60_000_000, lag=1234), other)
    log.follow()
    log.summarize()
    assert logged(caplog) == [("INFO", "1,000 records/s, 2 MB/s, " + behind)]
    for _ in range(120):  # an hour
        log.follow()
        log.summarize()
    assert logged(caplog) == [("INFO", "nothing was copied, " + behind)]
    reader.hold(replace(WELL, records=30_030, bytes=60_003_000))
    log.follow()
    log.summarize()
    assert logged(caplog) == [
        ("INFO", "1 records/s, 100 B/s, lag 0 records over 2 partitions, unknown for 1 of them")
    ]


def test_the_summary_counts_from_zero_in_a_new_copy_job(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.hold(replace(WELL, records=900))
    log.follow()
    log.summarize()
    reader.hold(replace(WELL, records=300))
    log.follow()
    log.summarize()
    reader.hold(replace(WELL, records=600))
    log.follow()
    log.summarize()
    assert [line.split(",")[0] for _, line in logged(caplog)] == ["30 records/s", "10 records/s"]


def test_reports_of_other_connectors_are_ignored(
    log: ProgressWatch, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = replace(failed(PartitionState.FAILED, "too large", 1), connector=ConnectorName("other"))
    reader.hold(replace(WELL, records=1, target_topic="a.orders"), replace(theirs, records=1))
    log.follow()
    assert logged(caplog) == []
    assert log.failed_tasks() == {}
    assert log.written_topics() == {"a.orders"}


def test_a_task_has_failed_while_one_of_its_partitions_has(log: ProgressWatch, reader: Reader) -> None:
    reader.hold(WELL, replace(failed(PartitionState.FAILED, "too large", 1), task=1))
    log.follow()
    assert log.failed_tasks() == {1: "orders-1: too large"}
    reader.hold(replace(WELL, source=TopicPartition("orders", 1), task=1))
    log.follow()
    assert log.failed_tasks() == {}


def test_what_tasks_can_t_write_beside_records_is_a_trouble_until_they_can(reader: Reader) -> None:
    """Tasks tell it in their own reports, which come every ten seconds while nothing is copied."""
    troubles = Troubles(logging.getLogger("x"))
    watch = ProgressWatch(Flow(Alias("a"), Alias("b")), reader, IDLE.connector, troubles=troubles)
    load = TaskLoad(0, None, 0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0)
    denied = "write to mm2-offset-syncs.b.internal: DENIED; needs WRITE on it: kafka-acls.sh"

    def report(task: int, at: float, unwritten: Mapping[str, str]) -> None:
        written = TaskProgress(IDLE.connector, task, 1, load, at, unwritten).to_record()
        read = parse(written)
        assert isinstance(read, TaskProgress)
        reader.measured[IDLE.connector, task] = read
        watch.follow()

    for task in range(3):
        report(task, FUTURE, {"mm2-offset-syncs.b.internal": denied})
    assert [(it.what, it.word, it.reason, it.remedy) for it in troubles.now] == [
        (
            "mm2-offset-syncs.b.internal",
            "not written",
            "write to mm2-offset-syncs.b.internal: DENIED",
            "needs WRITE on it: kafka-acls.sh",
        )
    ]
    for task in range(3):
        assert troubles.now
        report(task, FUTURE, {})
    assert not troubles.now
    report(0, AN_HOUR_AGO, {"mm2-offsets.a.internal": "of another process"})
    assert not troubles.now
