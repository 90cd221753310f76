"""Records of the progress topic are encoded, decoded and distinguished from others."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.storage.progress import (
    Driver,
    FlowLimits,
    JobEpoch,
    PartitionProgress,
    PartitionState,
    StateLost,
    parse,
    parse_order,
)

SOURCE = ConnectorName("MirrorSourceConnector")
numbers = st.integers(0, 2**62)
texts = st.text()

progress_reports = st.builds(
    PartitionProgress,
    connector=texts.map(ConnectorName),
    task=st.integers(0, 1000),
    job_epoch=numbers,
    source=st.builds(TopicPartition, texts, st.integers(0, 2**31 - 1)),
    target_topic=texts,
    records=numbers,
    bytes=numbers,
    position=st.none() | numbers,
    lag=st.none() | numbers,
    latency=st.dictionaries(st.integers(0, 200), st.integers(1, 1000), max_size=5).map(LatencyHistogram),
    state=st.sampled_from(PartitionState),
    error=st.none() | texts,
    updated_at=st.floats(0, 1e11),
    attempt=st.integers(0, 1000),
)
drivers = st.none() | st.builds(Driver, texts, st.integers(1, 2**22), st.floats(0, 1e11))
job_epochs = st.builds(JobEpoch, texts.map(ConnectorName), numbers, numbers, st.booleans(), numbers, drivers)
rates = st.integers(1, 2**62)
patterns = st.sampled_from([".*", "orders", r"a\\.b", "[é-ü]+", "(?i)x"])
flow_limits = st.builds(
    FlowLimits,
    texts.map(ConnectorName),
    st.builds(RateLimits, st.none() | rates, st.lists(st.tuples(patterns, rates), max_size=3).map(tuple)),
)


@given(progress_reports | job_epochs | flow_limits)
def test_what_is_written_is_read_back(content: PartitionProgress | JobEpoch | FlowLimits) -> None:
    assert parse(content.to_record()) == content


@given(progress_reports, job_epochs | flow_limits)
def test_tasks_see_orders_only(report: PartitionProgress, order: JobEpoch | FlowLimits) -> None:
    assert parse_order(report.to_record()) is None
    assert parse_order(order.to_record()) == order


def test_tasks_see_that_state_topics_were_lost() -> None:
    assert parse_order(StateLost(SOURCE).to_record()) == StateLost(SOURCE)


def test_compaction_keeps_the_latest_of_each_partition_and_connector() -> None:
    report = parse_report(records=1)
    assert report.to_record().key == b'["progress","MirrorSourceConnector","orders",3]'
    assert parse_report(records=2).to_record().key == report.to_record().key
    keys = {JobEpoch(SOURCE, number, 1, stopped=number > 1).to_record().key for number in range(3)}
    assert keys == {b'["generation","MirrorSourceConnector"]'}
    keys = {FlowLimits(SOURCE, limits).to_record().key for limits in (NO_LIMITS, RateLimits(5))}
    assert keys == {b'["limits","MirrorSourceConnector"]'}


def parse_report(records: int) -> PartitionProgress:
    return PartitionProgress(
        connector=SOURCE,
        task=0,
        job_epoch=1,
        source=TopicPartition("orders", 3),
        target_topic="A.orders",
        records=records,
        bytes=100,
        position=7,
        lag=0,
        latency=LatencyHistogram({5: records}),
        state=PartitionState.RUNNING,
        error=None,
        updated_at=1.5,
    )


@pytest.mark.parametrize(
    ("late", "known", "newest"),
    [((1, 0), (1, 1), 1), ((1, 5), (2, 0), 2), ((1, 5), (2, 0), None), ((1, 9), (1, 10), 2)],
)
def test_a_report_of_a_task_with_a_successor_is_late(
    late: tuple[int, int], known: tuple[int, int], newest: int | None
) -> None:
    job = None if newest is None else JobEpoch(SOURCE, newest)
    earlier, later = (
        replace(parse_report(1), job_epoch=job, attempt=attempt) for job, attempt in (late, known)
    )
    assert earlier.is_late(later, job)
    assert not later.is_late(earlier, job)
    assert not later.is_late(later, job)


def test_a_report_of_numbers_that_begin_again_is_not_late() -> None:
    before = replace(parse_report(1), job_epoch=57, attempt=2)
    assert not parse_report(1).is_late(before, JobEpoch(SOURCE, 1))


def test_other_programs_can_read_a_report() -> None:
    value = parse_report(records=2).to_record().value
    assert json.loads(value or b"") == {
        "task": 0,
        "generation": 1,
        "attempt": 0,
        "target": "A.orders",
        "records": 2,
        "bytes": 100,
        "position": 7,
        "lag": 0,
        "latency": {"5": 2},
        "state": "RUNNING",
        "error": None,
        "time": 1.5,
        "lost": 0,
        "looped": 0,
        "filtered": 0,
        "notice": None,
        "incidents": {},
    }


def test_other_programs_can_read_which_process_copies() -> None:
    driver = Driver("node-1", 4711, 1_700_000_000.25)
    job_epoch = JobEpoch(SOURCE, 7, 3, transactional_tasks=2, driver=driver)
    assert json.loads(job_epoch.to_record().value or b"") == {
        "generation": 7,
        "partitions": 3,
        "stopped": False,
        "transactional_tasks": 2,
        "driver": {"host": "node-1", "pid": 4711, "since": 1_700_000_000.25},
    }
    assert str(driver) == "process 4711 on node-1, running since 2023-11-14 22:13:20+00:00"


def test_a_copy_job_of_a_version_that_named_no_process_is_read() -> None:
    record = LogRecord(
        b'["generation","MirrorSourceConnector"]', b'{"generation":7,"partitions":3,"stopped":false}'
    )
    assert parse(record) == JobEpoch(SOURCE, 7, 3)


def test_other_programs_can_read_limits() -> None:
    value = FlowLimits(SOURCE, RateLimits(5, (("a.*", 3),))).to_record().value
    assert json.loads(value or b"") == {"flow": 5, "topics": [["a.*", 3]]}


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(None, None),
        LogRecord(b"", b""),
        LogRecord(b"\xff\xfe", b"{}"),
        LogRecord(b"[]", b"{}"),
        LogRecord(b"5", b"{}"),
        LogRecord(b'["weather","m"]', b"{}"),
        LogRecord(b'["generation"]', b'{"generation":1,"partitions":1,"stopped":false}'),
        LogRecord(b'["generation","m"]', b'{"generation":1}'),
        LogRecord(b'["generation","m"]', b'{"generation":"many","partitions":1,"stopped":false}'),
        LogRecord(b'["generation","m"]', None),
        LogRecord(b'["limits","m"]', None),
        LogRecord(b'["limits","m"]', b'{"flow":5}'),
        LogRecord(b'["limits","m"]', b'{"flow":0,"topics":[]}'),
        LogRecord(b'["limits","m"]', b'{"flow":null,"topics":[["a",-1]]}'),
        LogRecord(b'["limits","m"]', b'{"flow":null,"topics":[["(",5]]}'),
        LogRecord(b'["limits","m"]', b'{"flow":null,"topics":[["a"]]}'),
        LogRecord(b'["progress","m","t",0]', b"not json"),
        LogRecord(b'["progress","m","t"]', b"{}"),
        LogRecord(b'["progress","m","t",0]', b"[]"),
        LogRecord(parse_report(1).to_record().key, b'{"state":"DREAMING"}'),
    ],
)
def test_anything_else_is_nothing(record: LogRecord) -> None:
    assert parse(record) is None
    assert parse_order(record) is None


def test_the_topic_is_named_like_connect_s_own() -> None:
    """MM2's DefaultReplicationPolicy leaves `mm2-….internal` alone, whatever the separator (KIP-1074)."""
    assert StateTopic.PROGRESS.of(Alias("us-west")) == "mm2-progress.us-west.internal"
