"""`.write` and `.writeStream` of the format `sparkmirror`, read back by confluent-kafka."""

import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.processes import Process, start_process
from sparkmirror.kafka.data.partition_offsets import await_stable
from tests.spark import sink_program
from tests.spark.programs import PYTHON_PATH, await_end
from tests.support.broker_data import append, create_topic, keyed, records
from tests.support.connections import connection
from tests.support.waiting import await_value

COUNT: Final = 500
WAIT_S: Final = 150


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, COUNT, 1, 3).selectExpr(
        "CAST(id AS STRING) AS key",
        "CAST(concat('value ', id) AS BINARY) AS value",
        "timestamp_millis(1700000000000 + id) AS timestamp",
        "IF(id % 2 = 0, array(struct('id' AS key, CAST('x' AS BINARY) AS value)), NULL) AS headers",
    )


@pytest.mark.parametrize("prefix", ["", "spark.batch"])
def test_batch_write(spark: SparkSession, target_cluster: LocalCluster, prefix: str) -> None:
    topic = f"spark.written.{prefix or 'plain'}"
    create_topic(target_cluster.bootstrap_servers, topic, partitions=2)
    writer = rows(spark).write.format("sparkmirror").mode("append").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", target_cluster.bootstrap_servers)
    if prefix:
        writer = writer.option("transactional.id.prefix", prefix)
    writer.save()
    await_stable(connection(target_cluster), topic)
    found = list(records(target_cluster, topic))
    assert len(found) == COUNT
    for record in found:
        number = int(record.key() or b"")
        assert record.value() == b"value %d" % number
        assert record.timestamp()[1] == 1_700_000_000_000 + number
        names = [name for name, _ in record.headers() or ()]  # type: ignore[str-unpack]
        assert names == (["id"] if number % 2 == 0 else [])


@pytest.mark.parametrize(
    ("columns", "options", "named"),
    [
        (["value", "id"], {"topic": "t"}, "id for configuration schema: is no column of the sink"),
        (["key"], {"topic": "t"}, "a column value is needed"),
        (["value"], {}, "topic: is needed as an option"),
        (["value"], {"topic": "t", "kafka.transactional.id": "x"}, "set transactional.id.prefix"),
        (["value"], {"topic": "t", "transactionalIdPrefix": "x"}, "transactional.id.prefix exists"),
    ],
)
def test_what_cannot_be_written_is_named(
    spark: SparkSession, target_cluster: LocalCluster, columns: list[str], options: dict[str, str], named: str
) -> None:
    frame = rows(spark).selectExpr("*", "key AS id").select(*columns)
    writer = frame.write.format("sparkmirror").mode("append").options(**options)
    with pytest.raises(PySparkException, match=named):
        writer.option("kafka.bootstrap.servers", target_cluster.bootstrap_servers).save()


def test_overwriting_is_refused(spark: SparkSession, target_cluster: LocalCluster) -> None:
    writer = rows(spark).write.format("sparkmirror").mode("overwrite").option("topic", "t")
    with pytest.raises(PySparkException, match="a topic can only be appended to"):
        writer.option("kafka.bootstrap.servers", target_cluster.bootstrap_servers).save()


def test_query_whose_driver_is_killed_writes_exactly_once(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    """Twice with all its processes, when it has written the first rows that are new."""
    source, topic = "spark.killed.source", "spark.killed"
    create_topic(source_cluster.bootstrap_servers, source, partitions=3)
    create_topic(target_cluster.bootstrap_servers, topic, partitions=2)
    for partition in range(3):
        append(source_cluster, source, expected(partition), partition=partition)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    program = [sys.executable, str(Path(sink_program.__file__)), *servers, source, topic]
    command = ["env", f"PYTHONPATH={PYTHON_PATH}", *program, str(tmp_path / "checkpoint")]
    for run in range(3):
        log = tmp_path / f"{run}.log"
        process = start_process([command], log, outlives_us=False)
        try:
            if run < 2:
                await_rows(target_cluster, topic, process, log)
                assert process.is_alive(), log.read_text()
            else:
                await_end(process, WAIT_S, log)
        finally:
            process.kill()
    await_stable(connection(target_cluster), topic)
    found = Counter(record.key() for record in records(target_cluster, topic, read_committed=True))
    assert found == Counter(key for partition in range(3) for key, _ in expected(partition))


def expected(partition: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(b"%d %d" % (partition, at), b"v") for at in range(4000)]


def await_rows(cluster: LocalCluster, topic: str, process: Process, log: Path) -> None:
    """Wait until rows are written, whether they are committed or not."""
    written = len(keyed(cluster, topic))
    await_value(lambda: len(keyed(cluster, topic)) > written or not process.is_alive(), WAIT_S, log.read_text)
