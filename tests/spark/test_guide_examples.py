"""The queries of the guide `structured-streaming-kafka-integration`, with only the format's name changed."""

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, keyed, numbered

COUNT: Final = 60
READS: Final = {
    "one topic": ({"subscribe": "topic1"}, 2 * COUNT),
    "one topic, with headers": ({"subscribe": "topic1", "includeHeaders": "true"}, 2 * COUNT),
    "several topics": ({"subscribe": "topic1,topic2"}, 3 * COUNT),
    "a pattern": ({"subscribePattern": "topic.*"}, 3 * COUNT),
}
BATCH_READS: Final = {
    **READS,
    "explicit offsets": (
        {
            "subscribe": "topic1,topic2",
            "startingOffsets": """{"topic1":{"0":23,"1":-2},"topic2":{"0":-2}}""",
            "endingOffsets": """{"topic1":{"0":50,"1":-1},"topic2":{"0":-1}}""",
        },
        50 - 23 + 2 * COUNT,
    ),
    "a pattern between the earliest and the latest offsets": (
        {"subscribePattern": "topic.*", "startingOffsets": "earliest", "endingOffsets": "latest"},
        3 * COUNT,
    ),
}


@pytest.fixture(scope="module")
def servers(source_cluster: LocalCluster) -> str:
    servers = source_cluster.bootstrap_servers
    for topic, partitions in (("topic1", 2), ("topic2", 1)):
        create_topic(servers, topic, partitions=partitions)
        for partition in range(partitions):
            append(source_cluster, topic, numbered(COUNT), partition=partition)
    return servers


def read(spark: SparkSession, servers: str, options: dict[str, str]) -> DataFrame:
    return (
        spark.read.format("sparkmirror").option("kafka.bootstrap.servers", servers).options(**options).load()
    )


@pytest.mark.parametrize("example", BATCH_READS)
def test_batch_queries(spark: SparkSession, servers: str, example: str) -> None:
    options, count = BATCH_READS[example]
    frame = read(spark, servers, options)
    columns = ["headers"] if "includeHeaders" in options else []
    rows = frame.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", *columns).collect()
    assert len(rows) == count
    assert {(row.key, row.value) for row in rows} == {
        ((key or b"").decode(), (value or b"").decode()) for key, value in numbered(COUNT)
    }


@pytest.mark.parametrize("example", READS)
def test_streaming_queries(spark: SparkSession, servers: str, tmp_path: Path, example: str) -> None:
    """Examples begin at the latest offsets, as in Spark, so they are asked to begin at the earliest."""
    options, count = READS[example]
    reader = spark.readStream.format("sparkmirror").option("kafka.bootstrap.servers", servers)
    frame = reader.options(**options).option("startingOffsets", "earliest").load()
    name = f"guide_{list(READS).index(example)}"
    writer = frame.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").writeStream.format("memory")
    writer = writer.queryName(name).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    assert writer.start().awaitTermination(120)
    assert spark.table(name).count() == count


@pytest.mark.parametrize("topic", ["option", "column"])
@pytest.mark.parametrize("is_streaming", [False, True])
def test_writes(
    spark: SparkSession,
    servers: str,
    source_cluster: LocalCluster,
    tmp_path: Path,
    topic: str,
    is_streaming: bool,
) -> None:
    written = f"guide.written.{topic}.{is_streaming}"
    create_topic(servers, written)
    columns = ["CAST(key AS STRING)", "CAST(value AS STRING)"]
    chosen = columns if topic == "option" else [f"'{written}' AS topic", *columns]
    options = {"kafka.bootstrap.servers": servers, **({"topic": written} if topic == "option" else {})}
    if is_streaming:
        reader = spark.readStream.format("sparkmirror").option("kafka.bootstrap.servers", servers)
        stream = reader.option("subscribe", "topic2").option("startingOffsets", "earliest").load()
        query = stream.selectExpr(*chosen).writeStream.format("sparkmirror").options(**options)
        query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert query.start().awaitTermination(120)
    else:
        frame = read(spark, servers, {"subscribe": "topic2"})
        frame.selectExpr(*chosen).write.format("sparkmirror").mode("append").options(**options).save()
    assert sorted(map(str, keyed(source_cluster, written))) == sorted(map(str, numbered(COUNT)))
