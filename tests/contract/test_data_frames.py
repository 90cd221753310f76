"""The readers of data frames plan and read what confluent-kafka reads, without a Spark session."""

import json
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import confluent_kafka as confluent
import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual, In, LessThan
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from sparkmirror.clusters.ports import HOST
from sparkmirror.dataframes.query_readers import (
    BatchReader,
    FilteringReader,
    StreamReader,
    batch_reader,
    stream_reader,
)
from sparkmirror.dataframes.schema import source_schema
from sparkmirror.domain.errors import ConfigError, KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import await_stable
from tests.memory.server import MemoryServer
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import create_topic, delete_records, delete_topic, grow
from tests.support.connections import connection
from tests.support.secured_broker import SecuredBroker, login

COUNT: Final = 400
FIRST_MS: Final = 1_700_000_000_000
SCHEMA: Final = source_schema(includes_headers=True)
Row = Mapping[str, Any]


def write(cluster: AnyCluster, topic: str, numbers: range, *, partition: int, **settings: Any) -> None:
    """A record each minute, with what records may have."""
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, **settings}
    )
    headers: list[tuple[str, str | bytes | None]]
    for at in numbers:
        headers = [("number", b"%d" % at), ("none", None)]
        producer.produce(
            topic,
            None if at % 11 == 0 else b"value %d" % at * (at % 5),
            None if at % 7 == 0 else b"key %d" % at,
            partition,
            timestamp=FIRST_MS + 60_000 * at,
            headers=headers[: at % 3] or None,
        )
    assert producer.flush(30) == 0


def consumed(cluster: AnyCluster, topic: str, **settings: Any) -> list[Row]:
    """Read with confluent-kafka, as rows."""
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "test.dataframes",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **settings,
        }
    )
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([confluent.TopicPartition(topic, number, 0) for number in partitions])
    found: list[Row] = []
    ended: set[int | None] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(20)
        assert message is not None
        if (error := message.error()) is not None:
            assert error.code() == confluent.KafkaError._PARTITION_EOF
            ended.add(message.partition())
        else:
            found.append(row_of(message))
    consumer.close()
    return ordered(found)


def row_of(message: confluent.Message) -> Row:
    kind, timestamp = message.timestamp()
    pairs: Any = message.headers() or ()
    headers = [{"key": name, "value": content} for name, content in pairs]
    return {
        "key": message.key(),
        "value": message.value(),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": datetime.fromtimestamp(timestamp / 1000, UTC),
        "timestampType": 0 if kind == confluent.TIMESTAMP_CREATE_TIME else 1,
        "headers": headers or None,
    }


def ordered(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def options(cluster: AnyCluster, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **more}


def read(reader: BatchReader) -> list[Row]:
    return rows_of(reader, reader.partitions())


def rows_of(reader: BatchReader | StreamReader, partitions: Sequence[Any]) -> list[Row]:
    """Read as tasks do, which get reader and partition pickled."""
    found: list[Row] = []
    for partition in partitions:
        in_task = pickle.loads(pickle.dumps((reader, partition)))
        for batch in in_task[0].read(in_task[1]):
            found += batch.to_pylist()
    return ordered(found)


def batch(cluster: AnyCluster, topic: str, **more: str) -> BatchReader:
    return batch_reader(options(cluster, topic, **more), SCHEMA)


@pytest.fixture(scope="module")
def orders(cluster: AnyCluster) -> str:
    """Records of every codec in two partitions."""
    topic = "dataframes.orders"
    create_topic(cluster.bootstrap_servers, topic, partitions=3)
    for at, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        numbers = range(at * COUNT // 5, (at + 1) * COUNT // 5)
        for partition in (0, 1):
            write(
                cluster,
                topic,
                numbers,
                partition=partition,
                **{"compression.type": codec, "batch.size": 2000},
            )
    return topic


def test_rows_are_what_another_client_reads(cluster: AnyCluster, orders: str) -> None:
    rows = read(batch(cluster, orders))
    assert len(rows) == 2 * COUNT
    assert rows == consumed(cluster, orders)


def test_only_columns_of_the_schema(cluster: AnyCluster, orders: str) -> None:
    schema = StructType([SCHEMA["offset"], SCHEMA["key"]])
    expected = [{name: row[name] for name in ("offset", "key")} for row in consumed(cluster, orders)]
    reader = batch_reader(options(cluster, orders), schema)
    (first, second) = reader.partitions()
    assert [
        row for part in (first, second) for found in reader.read(part) for row in found.to_pylist()
    ] == expected


@pytest.mark.parametrize(
    ("more", "first", "end"),
    [
        ({"startingOffsets": '{"dataframes.orders":{"0":7,"1":7,"2":0}}'}, 7, COUNT),
        ({"endingOffsets": '{"dataframes.orders":{"0":9,"1":9,"2":-1}}'}, 0, 9),
        (
            {
                "startingOffsets": '{"dataframes.orders":{"0":33,"1":33,"2":-2}}',
                "endingOffsets": '{"dataframes.orders":{"0":201,"1":201,"2":0}}',
            },
            33,
            201,
        ),
        ({"endingTimestamp": str(FIRST_MS + 60_000 * 50)}, 0, 50),
        ({"minPartitions": "9"}, 0, COUNT),
        ({"maxRecordsPerPartition": "33"}, 0, COUNT),
        ({"kafka.max.partition.fetch.bytes": "3000"}, 0, COUNT),
    ],
)
def test_ranges(cluster: AnyCluster, orders: str, more: dict[str, str], first: int, end: int) -> None:
    expected = [row for row in consumed(cluster, orders) if first <= row["offset"] < end]
    assert read(batch(cluster, orders, **more)) == expected


def test_an_end_behind_the_log_is_named(cluster: AnyCluster, orders: str) -> None:
    more = {"endingOffsets": '{"dataframes.orders":{"0":9,"1":5000,"2":-1}}'}
    with pytest.raises(ConfigError, match=rf"orders-1: 5000 .*endingOffsets.*ends at offset {COUNT}"):
        batch(cluster, orders, **more).partitions()
    expected = [row for row in consumed(cluster, orders) if row["partition"] == 1 or row["offset"] < 9]
    assert read(batch(cluster, orders, failOnDataLoss="false", **more)) == expected


def test_tasks_share_large_partitions(cluster: AnyCluster, orders: str) -> None:
    assert len(batch(cluster, orders).partitions()) == 2
    assert len(batch(cluster, orders, minPartitions="9").partitions()) == 10
    assert len(batch(cluster, orders, maxRecordsPerPartition="33").partitions()) == 2 * 13


def test_start_by_time(cluster: AnyCluster, orders: str) -> None:
    start = str(FIRST_MS + 60_000 * 40 - 1)
    with pytest.raises(
        ConfigError, match=r"orders-2 has no record .*startingOffsetsByTimestampStrategy=latest"
    ):
        batch(cluster, orders, startingTimestamp=start).partitions()
    more = {"startingTimestamp": start, "startingOffsetsByTimestampStrategy": "latest"}
    expected = [row for row in consumed(cluster, orders) if row["offset"] >= 40]
    assert read(batch(cluster, orders, **more)) == expected
    by_partition = json.dumps({orders: {"0": int(start), "1": FIRST_MS + 60_000 * 90, "2": int(start)}})
    rows = read(
        batch(
            cluster,
            orders,
            startingOffsetsByTimestamp=by_partition,
            startingOffsetsByTimestampStrategy="latest",
        )
    )
    assert [min(row["offset"] for row in rows if row["partition"] == at) for at in (0, 1)] == [40, 90]


@pytest.mark.parametrize("listener", ["MUTUAL", "SAFE"])
def test_tasks_connect_with_certificates_and_logins(secured: SecuredBroker, listener: str) -> None:
    topic = f"dataframes.{listener}"
    create_topic(secured.cluster.bootstrap_servers, topic)
    write(secured.cluster, topic, range(5), partition=0)
    client = {
        "MUTUAL": secured.known,
        "SAFE": {**login("SCRAM-SHA-512"), **secured.trusting, "security.protocol": "SASL_SSL"},
    }[listener]
    given = {
        **options(secured.cluster, topic),
        **{f"kafka.{key}": value for key, value in client.items()},
        "kafka.bootstrap.servers": f"{HOST}:{secured.ports[listener]}",
    }
    assert read(batch_reader(given, SCHEMA)) == consumed(secured.cluster, topic)


def test_assign_and_pattern(cluster: AnyCluster, orders: str) -> None:
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    expected = consumed(cluster, orders)
    one = read(batch_reader({**servers, "assign": '{"dataframes.orders":[1]}'}, SCHEMA))
    assert one == [row for row in expected if row["partition"] == 1]
    assert read(batch_reader({**servers, "subscribePattern": r"dataframes\.ord.*"}, SCHEMA)) == expected
    assert batch_reader({**servers, "subscribePattern": "no such topic"}, SCHEMA).partitions() == []
    with pytest.raises(ConfigError, match=r"orders-7 .*is no partition"):
        batch_reader({**servers, "assign": '{"dataframes.orders":[7]}'}, SCHEMA).partitions()


def test_missing_topic_is_named(cluster: AnyCluster) -> None:
    with pytest.raises(KafkaError, match=r"read topic dataframes\.nowhere"):
        batch(cluster, "dataframes.nowhere").partitions()


def test_offsets_must_name_every_partition(cluster: AnyCluster, orders: str) -> None:
    with pytest.raises(ConfigError, match=r"orders-2 is not named"):
        batch(cluster, orders, startingOffsets='{"dataframes.orders":{"0":7,"1":7}}').partitions()


@pytest.mark.parametrize(
    ("filters", "keeps"),
    [
        ([EqualTo(("partition",), 1)], lambda row: row["partition"] == 1),
        ([In(("topic",), ("other",))], lambda _: False),
        (
            [GreaterThanOrEqual(("offset",), 90), LessThan(("offset",), 95)],
            lambda row: 90 <= row["offset"] < 95,
        ),
        (
            [
                GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(FIRST_MS / 1000 + 6000, UTC)),
                LessThan(("timestamp",), datetime.fromtimestamp(FIRST_MS / 1000 + 7200, UTC)),
            ],
            lambda row: 100 <= row["offset"] < 120,
        ),
    ],
)
def test_filters_leave_records_unread(
    cluster: AnyCluster, orders: str, filters: list[Filter], keeps: Any
) -> None:
    reader = batch(cluster, orders, pushdown="true")
    assert isinstance(reader, FilteringReader)
    assert list(reader.pushFilters(filters)) == filters, "Spark applies all of them again"
    rows, every = read(reader), consumed(cluster, orders)
    assert [row for row in rows if keeps(row)] == [row for row in every if keeps(row)]
    assert len(rows) < len(every) / 1.9


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(cluster: AnyCluster, level: str) -> None:
    topic = f"dataframes.transactions.{level}"
    create_topic(cluster.bootstrap_servers, topic)
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "linger.ms": 5}
    )
    producer.init_transactions(30)
    for round_ in range(4):
        producer.begin_transaction()
        for at in range(20):
            producer.produce(topic, b"%d of %d" % (at, round_))
        assert producer.flush(30) == 0
        if round_ % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    await_stable(connection(cluster), topic)
    rows = read(batch(cluster, topic, **{"kafka.isolation.level": level}))
    assert rows == consumed(cluster, topic, **{"isolation.level": level})
    assert len(rows) == (40 if level == "read_committed" else 80)


def stream(cluster: AnyCluster, topic: str, **more: str) -> StreamReader:
    return stream_reader(options(cluster, topic, startingOffsets="earliest", **more), SCHEMA)


def batches(reader: StreamReader, start: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """The micro-batches up to now."""
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        yield end, rows_of(reader, reader.partitions(start, end))
        start = end


def test_micro_batches_are_the_topic(cluster: AnyCluster, orders: str) -> None:
    reader = stream(cluster, orders, maxOffsetsPerTrigger="150")
    found = list(batches(reader, reader.initialOffset()))
    assert [len(rows) for _, rows in found] == [150, 150, 150, 150, 150, 50]
    assert ordered([row for _, rows in found for row in rows]) == consumed(cluster, orders)
    assert found[-1][0]["dataframes.orders"] == {"0": COUNT, "1": COUNT, "2": 0}
    latest = reader.reportLatestOffset()
    assert latest is not None
    assert latest[orders] == found[-1][0][orders]
    reader.stop()


def test_a_query_starts_at_the_end_by_default(cluster: AnyCluster, orders: str) -> None:
    reader = stream_reader(options(cluster, orders), SCHEMA)
    start = reader.initialOffset()
    assert start["dataframes.orders"] == {"0": COUNT, "1": COUNT, "2": 0}
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    reader.stop()


def test_min_offsets_wait_for_more_or_for_the_delay(cluster: AnyCluster) -> None:
    topic = "dataframes.min"
    create_topic(cluster.bootstrap_servers, topic)
    reader = stream(cluster, topic, minOffsetsPerTrigger="10", maxTriggerDelay="1500ms")
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset(start, limit) == start
    write(cluster, topic, range(5), partition=0)
    assert reader.latestOffset(start, limit) == start
    time.sleep(1.6)
    assert reader.latestOffset(start, limit)[topic] == {"0": 5}
    write(cluster, topic, range(5, 20), partition=0)
    assert reader.latestOffset(start, limit)[topic] == {"0": 20}
    reader.stop()


def test_available_now_ends_where_it_began_looking(cluster: AnyCluster) -> None:
    topic = "dataframes.now"
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(10), partition=0)
    reader = stream(cluster, topic, maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    write(cluster, topic, range(10, 20), partition=0)
    assert [len(rows) for _, rows in batches(reader, start)] == [4, 4, 2]
    reader.stop()


def test_partitions_that_come_are_read_from_their_start(cluster: AnyCluster) -> None:
    topic = "dataframes.grown"
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(3), partition=0)
    reader = stream(cluster, topic, maxOffsetsPerTrigger="100")
    ((end, rows),) = batches(reader, reader.initialOffset())
    assert len(rows) == 3
    grow(cluster, topic, 2)
    write(cluster, topic, range(3), partition=1)
    ((_, rows),) = batches(reader, end)
    assert [(row["partition"], row["offset"]) for row in rows] == [(1, 0), (1, 1), (1, 2)]
    reader.stop()


def test_a_recreated_topic_is_found(cluster: AnyCluster) -> None:
    topic = "dataframes.recreated"
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(5), partition=0)
    reader = stream(cluster, topic)
    ((end, _),) = batches(reader, reader.initialOffset())
    delete_topic(cluster, topic)
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(100, 108), partition=0)
    with pytest.raises(KafkaError, match=f"topic {topic} was deleted and created again.*failOnDataLoss"):
        list(batches(reader, end))
    lenient = stream(cluster, topic, failOnDataLoss="false")
    ((_, rows),) = batches(lenient, end)
    assert [row["offset"] for row in rows] == list(range(8)), "all of the new topic"
    for each in (reader, lenient):
        each.stop()


def test_deleted_records_are_found(cluster: AnyCluster) -> None:
    topic = "dataframes.deleted"
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(20), partition=0)
    reader = stream(cluster, topic)
    start = reader.initialOffset()
    delete_records(cluster, topic, 12)
    with pytest.raises(KafkaError, match=f"{topic}-0: offsets 0 to 11 were deleted.*failOnDataLoss"):
        list(batches(reader, start))
    lenient = stream(cluster, topic, failOnDataLoss="false")
    ((_, rows),) = batches(lenient, start)
    assert [row["offset"] for row in rows] == list(range(12, 20))
    for each in (reader, lenient):
        each.stop()


def test_a_log_that_ends_early_is_found(cluster: AnyCluster) -> None:
    topic = "dataframes.short"
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(5), partition=0)
    reader = stream(cluster, topic, **{"kafkaConsumer.pollTimeoutMs": "1200"})
    start = reader.initialOffset()
    ahead = {**start, topic: {"0": 9}}
    with pytest.raises(KafkaError, match=r"ends at offset 5 now, .*up to 9"):
        list(batches(reader, ahead))
    with pytest.raises(KafkaError, match=r"ends at offset 5, and 9 was its end"):
        rows_of(reader, reader.partitions(start, ahead))
    lenient = stream(cluster, topic, failOnDataLoss="false", **{"kafkaConsumer.pollTimeoutMs": "1200"})
    assert len(rows_of(lenient, lenient.partitions(start, ahead))) == 5
    for each in (reader, lenient):
        each.stop()


@pytest.mark.memory
def test_a_log_that_was_truncated_and_has_grown_again_is_found(memory_cluster: MemoryServer) -> None:
    topic = "dataframes.truncated"
    create_topic(memory_cluster.bootstrap_servers, topic)
    for at in range(0, 10, 5):
        write(memory_cluster, topic, range(at, at + 5), partition=0)
    reader = stream(memory_cluster, topic)
    ((end, _),) = batches(reader, reader.initialOffset())
    assert end["leader epochs"] == {topic: {"0": 0}}
    log = memory_cluster.cluster.log(TopicPartition(topic, 0))
    memory_cluster.call(lambda: log.truncate(5, memory_cluster.cluster.now_ms()))
    write(memory_cluster, topic, range(5, 15), partition=0)
    with pytest.raises(KafkaError, match=r"truncated-0: the log was truncated at offset 5, .*failOnDataLoss"):
        list(batches(reader, end))
    lenient = stream(memory_cluster, topic, failOnDataLoss="false")
    ((_, rows),) = batches(lenient, end)
    assert [row["offset"] for row in rows] == list(range(10, 15))
    for each in (reader, lenient):
        each.stop()


def test_finished_epochs_are_committed_for_a_group(cluster: AnyCluster) -> None:
    topic, group = "dataframes.committed", "dataframes.group"
    create_topic(cluster.bootstrap_servers, topic)
    write(cluster, topic, range(5), partition=0)
    reader = stream(cluster, topic, **{"commit.group.id": group})
    ((end, _),) = batches(reader, reader.initialOffset())
    reader.commit(end)
    consumer = confluent.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    (found,) = consumer.committed([confluent.TopicPartition(topic, 0)], 20)
    assert found.offset == 5
    consumer.close()
    reader.stop()
