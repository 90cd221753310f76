"""Options and schemas of data frames that are written, and the digest by which tasks compare their rows."""

from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkmirror.batches.producer import ProducerId
from sparkmirror.dataframes.decision_record import Decision, Prepared
from sparkmirror.dataframes.digest import Digest
from sparkmirror.dataframes.schema import check_sink_schema, check_source_schema, source_schema
from sparkmirror.dataframes.write_options import write_options
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import TopicPartition

TYPES: Final[dict[str, DataType]] = {
    "STRING": StringType(),
    "BINARY": BinaryType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "TIMESTAMP": TimestampType(),
}
SERVERS: Final = {"kafka.bootstrap.servers": "broker:9092"}


def test_defaults() -> None:
    found = write_options({**SERVERS, "TOPIC": "Orders"})
    assert (found.topic, found.prefix, found.decisions_topic) == (
        "Orders",
        None,
        "sparkmirror-sink-decisions",
    )
    assert found.producer.idempotent
    assert found.producer.acks == -1
    assert found.transaction_timeout_s == 900


def test_producer_options_are_kafkas() -> None:
    more = {"kafka.compression.type": "zstd", "kafka.transaction.timeout.ms": "5000"}
    found = write_options({**SERVERS, **more, "transactional.id.prefix": "orders"})
    assert found.producer.compression == "zstd"
    assert found.transaction_timeout_s == 5
    assert found.task_id(3, 1).startswith(found.task_prefix)
    assert not found.decision_id.startswith(found.task_prefix)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"topics": "orders"}, "topics: .*topic exists"),
        ({"subscribe": "orders"}, "subscribe: the sparkmirror sink has no such option"),
        ({"kafka.isolation.level": "read_committed"}, "kafka.isolation.level"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer"),
        ({"kafka.value.serializer": "x"}, "kafka.value.serializer"),
        ({"kafka.transactional.id": "x"}, "kafka.transactional.id: .*transactional.id.prefix"),
        ({"kafka.partitioner.class": "x"}, "kafka.partitioner.class"),
        ({"kafka.acks": "0"}, "kafka.acks"),
        ({"transactional.id.prefix": " "}, "transactional.id.prefix"),
        ({"transactional.id.prefix": "x", "kafka.acks": "1"}, "kafka.acks"),
        ({"transactional.id.prefix": "x", "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence"),
    ],
)
def test_options_that_cannot_be_used_are_named(given: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        write_options({**SERVERS, **given})


def schema(ddl: str) -> StructType:
    """Return a schema of columns with simple types; PySpark's own parser of DDL is in Java."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in map(str.split, ddl.split(","))])


@pytest.mark.parametrize(
    "ddl", ["value STRING", "key STRING, value BINARY, timestamp TIMESTAMP, partition INT"]
)
def test_schemas_that_can_be_written(ddl: str) -> None:
    check_sink_schema(schema(ddl), has_topic=True)
    check_sink_schema(source_schema(includes_headers=True), has_topic=False)


@pytest.mark.parametrize(
    ("ddl", "named"),
    [
        ("key STRING", "value is needed"),
        ("value INT", "value.*is string or binary, not int"),
        ("value STRING, partition STRING", "partition.*is int"),
        ("value STRING, timestamp BIGINT", "timestamp.*is timestamp"),
        ("value STRING, headers STRING", "headers"),
        ("value STRING, colour STRING", "colour.*is no column"),
    ],
)
def test_schemas_that_cannot_be_written(ddl: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check_sink_schema(schema(ddl), has_topic=True)


def test_schemas_that_can_be_read() -> None:
    every = source_schema(includes_headers=True)
    check_source_schema(StructType([every["headers"], every["offset"]]))
    with pytest.raises(ConfigError, match="names no column"):
        check_source_schema(StructType([]))


KEYS: Final = st.lists(
    st.tuples(st.none() | st.binary(max_size=5), st.binary(max_size=5)), min_size=1, max_size=8
)


def digest(rows: list[tuple[bytes | None, bytes]]) -> str:
    found = Digest()
    for part in (rows[:2], rows[2:]):
        keys, values = [key for key, _ in part], [value for _, value in part]
        found.add(
            pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
        )
    assert found.rows == len(rows)
    return str(found)


@given(KEYS, st.randoms(use_true_random=False))
def test_digests_ignore_the_order_of_rows(rows: list[tuple[bytes | None, bytes]], chance: object) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # of random.Random
    assert digest(shuffled) == digest(rows)


@given(KEYS, KEYS)
def test_digests_tell_other_rows(
    rows: list[tuple[bytes | None, bytes]], others: list[tuple[bytes | None, bytes]]
) -> None:
    same = sorted(map(repr, rows)) == sorted(map(repr, others))
    assert (digest(rows) == digest(others)) == same or len(rows) != len(others)


def test_decisions_are_read_as_they_were_written() -> None:
    task = Prepared(1, 5, "ab", "p-task-1-0", ProducerId(7, 2), True, [TopicPartition("t", 3)], 99)
    decision = Decision(4, [task, Prepared(2, 0, "")])
    again = Decision.decode(decision.encode())
    assert again.batch == 4
    assert [(each.task, each.producer, list(each.partitions)) for each in again.tasks] == [
        (1, ProducerId(7, 2), [TopicPartition("t", 3)]),
        (2, ProducerId(-1, -1), []),
    ]
