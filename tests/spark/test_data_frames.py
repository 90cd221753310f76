"""`spark.read` and `spark.readStream` of the format `sparkmirror`, beside confluent-kafka."""

from pathlib import Path
from typing import Any, Final

import confluent_kafka as confluent
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sparkmirror import offsets_behind_latest
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, numbered

TOPIC: Final = "spark.orders"
COUNT: Final = 3000
WAIT_S: Final = 120


@pytest.fixture(scope="module")
def servers(source_cluster: LocalCluster) -> str:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=2)
    for partition in range(2):
        append(source_cluster, TOPIC, numbered(COUNT), partition=partition)
    return source_cluster.bootstrap_servers


def read(spark: SparkSession, servers: str, **options: str) -> DataFrame:
    reader = spark.read.format("sparkmirror").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", TOPIC).options(**options).load()


def test_batch_query(spark: SparkSession, servers: str) -> None:
    frame = read(spark, servers, includeHeaders="true")
    assert frame.columns == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType"),
        "headers",
    ]
    rows = frame.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "partition", "offset").collect()
    assert sorted((row.partition, row.offset, row.key, row.value) for row in rows) == [
        (partition, at, (key or b"").decode(), (value or b"").decode())
        for partition in range(2)
        for at, (key, value) in enumerate(numbered(COUNT))
    ]


def test_only_columns_of_the_schema(spark: SparkSession, servers: str) -> None:
    reader = spark.read.format("sparkmirror").schema(
        "offset BIGINT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )
    frame = reader.option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC).load()
    assert frame.where("headers IS NULL").agg({"offset": "sum"}).collect()[0][0] == COUNT * (COUNT - 1)


@pytest.mark.parametrize(
    ("schema", "options", "named"),
    [
        ("color STRING", {}, "Invalid value color for configuration schema"),
        ("offset STRING", {}, "is bigint, not string"),
        ("", {"startingOffset": "earliest"}, "startingoffset: the sparkmirror source has no such option"),
        ("", {"kafka.security.protocol": "SSH"}, "kafka.security.protocol"),
        ("", {"startingOffsets": "latest"}, "startingOffsets: makes no sense for a batch query"),
    ],
)
def test_what_cannot_be_used_is_named(
    spark: SparkSession, servers: str, schema: str, options: dict[str, str], named: str
) -> None:
    reader = spark.read.format("sparkmirror")
    if schema:
        reader = reader.schema(schema)
    with pytest.raises(PySparkException, match=named):
        reader.option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC).options(
            **options
        ).load().count()


def test_push_down_on_request(spark: SparkSession, servers: str) -> None:
    pushed = read(spark, servers, pushdown="true").where("partition = 1 AND offset >= 10 AND offset < 15")
    with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        pushed.count()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert (
            read(spark, servers, pushdown="true")
            .where("partition = 1 AND offset >= 10 AND offset < 15 AND timestamp > '2020-01-01'")
            .count()
            == 5
        )
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def stream(spark: SparkSession, servers: str, topic: str = TOPIC, **options: str) -> DataFrame:
    reader = spark.readStream.format("sparkmirror").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).options(startingOffsets="earliest", **options).load()


def ended(query: StreamingQuery) -> list[Any]:
    try:
        assert query.awaitTermination(WAIT_S)
        return list(query.recentProgress)
    finally:
        query.stop()


def test_streaming_query_with_a_limit_and_a_group(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    frame = stream(spark, servers, maxOffsetsPerTrigger="2500", **{"commit.group.id": "spark.group"})
    writer = frame.writeStream.format("memory").queryName("spark_orders").trigger(availableNow=True)
    progress = ended(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
    assert [each.numInputRows for each in progress if each.numInputRows] == [2500, 2500, 1000]
    assert (
        spark.sql("SELECT count(DISTINCT partition, offset) FROM spark_orders").collect()[0][0] == 2 * COUNT
    )
    behind = [offsets_behind_latest(each)["maxOffsetsBehindLatest"] for each in progress if each.numInputRows]
    assert behind == [1750, 500, 0]
    consumer = confluent.Consumer({"bootstrap.servers": servers, "group.id": "spark.group"})
    committed = consumer.committed([confluent.TopicPartition(TOPIC, at) for at in range(2)], 20)
    consumer.close()
    assert [each.offset for each in committed] == [COUNT, COUNT]


def test_a_query_goes_on_from_its_checkpoint(
    spark: SparkSession, servers: str, source_cluster: LocalCluster, tmp_path: Path
) -> None:
    topic = "spark.resumed"
    create_topic(servers, topic)
    counts = []
    for _ in range(2):
        append(source_cluster, topic, numbered(100))
        writer = stream(spark, servers, topic).writeStream.format("noop").trigger(availableNow=True)
        progress = ended(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
        counts.append(sum(each.numInputRows for each in progress))
    assert counts == [100, 100]
