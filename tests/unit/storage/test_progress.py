"""Records of the progress topic: written, read back, and told apart from anything else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.domain.log_records import LogRecord
from sparkmirror.storage.progress import (
    Generation,
    PartitionProgress,
    PartitionState,
    parse,
    parse_generation,
    progress_topic,
)

SOURCE = ConnectorName("MirrorSourceConnector")
numbers = st.integers(0, 2**62)
texts = st.text()

progress_reports = st.builds(
    PartitionProgress,
    connector=texts.map(ConnectorName),
    task=st.integers(0, 1000),
    generation=numbers,
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
)
generations = st.builds(Generation, texts.map(ConnectorName), numbers, numbers, st.booleans())


@given(progress_reports | generations)
def test_what_is_written_is_read_back(content: PartitionProgress | Generation) -> None:
    assert parse(content.to_record()) == content


@given(progress_reports, generations)
def test_readers_of_generations_see_nothing_else(report: PartitionProgress, generation: Generation) -> None:
    assert parse_generation(report.to_record()) is None
    assert parse_generation(generation.to_record()) == generation


def test_compaction_keeps_the_latest_of_each_partition_and_connector() -> None:
    report = parse_report(records=1)
    assert report.to_record().key == b'["progress","MirrorSourceConnector","orders",3]'
    assert parse_report(records=2).to_record().key == report.to_record().key
    keys = {Generation(SOURCE, number, 1, stopped=number > 1).to_record().key for number in range(3)}
    assert keys == {b'["generation","MirrorSourceConnector"]'}


def parse_report(records: int) -> PartitionProgress:
    return PartitionProgress(
        connector=SOURCE,
        task=0,
        generation=1,
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


def test_other_programs_can_read_a_report() -> None:
    value = parse_report(records=2).to_record().value
    assert json.loads(value or b"") == {
        "task": 0,
        "generation": 1,
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
        "notice": None,
    }


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
        LogRecord(b'["progress","m","t",0]', b"not json"),
        LogRecord(b'["progress","m","t"]', b"{}"),
        LogRecord(b'["progress","m","t",0]', b"[]"),
        LogRecord(parse_report(1).to_record().key, b'{"state":"DREAMING"}'),
    ],
)
def test_anything_else_is_nothing(record: LogRecord) -> None:
    assert parse(record) is None
    assert parse_generation(record) is None


def test_the_topic_is_named_like_connect_s_own() -> None:
    """MM2's DefaultReplicationPolicy leaves `mm2-….internal` alone, whatever the separator (KIP-1074)."""
    assert progress_topic(Alias("us-west")) == "mm2-progress.us-west.internal"
