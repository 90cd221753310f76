"""A Spark Structured Streaming query moves to the target, and back, by its bootstrap servers alone.

Not part of `make test`: `python -m pytest tests/system/check_moved_consumers.py` takes two minutes. The
source is in Python, which needs no jar; as Spark's own it keeps Kafka's offsets in the query's checkpoint.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, end_offsets, move_log_starts, numbered
from tests.support.mirror import running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

TOPIC: Final = "relocated.orders"
START: Final = 40
WAIT_S: Final = 180.0


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # for the workers that read
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    # How long Spark waits for a Python worker, which imports this file's modules first.
    session = builder.config("spark.python.authenticate.socketTimeout", "120s").getOrCreate()
    session.dataSource.register(Records)
    yield session
    session.stop()


class Records(DataSource):
    """A partition's committed records as a stream whose offsets are Kafka's."""

    @classmethod
    def name(cls) -> str:
        return "records"

    def schema(self) -> str:
        return "offset LONG, value STRING"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:  # noqa: N802 - Spark's name
        del schema
        return _Reader(str(self.options["servers"]))


class _Reader(SimpleDataSourceStreamReader):
    def __init__(self, servers: str) -> None:
        self._servers = servers

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        with TopicReader(self._servers, TOPIC) as reader:
            return {"next": reader.offsets(0)[0]}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int, str]], dict[str, int]]:
        rows = list(self._rows(start["next"], None))
        return iter(rows), {"next": rows[-1][0] + 1 if rows else start["next"]}

    def readBetweenOffsets(  # noqa: N802 - Spark's name
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[int, str]]:
        return self._rows(start["next"], end["next"])

    def _rows(self, start: int, end: int | None) -> Iterator[tuple[int, str]]:
        with TopicReader(self._servers, TOPIC, read_committed=True) as reader:
            for record in reader.read(0, start):
                offset, value = record.offset() or 0, record.value() or b""
                if end is None or offset < end:
                    yield offset, value.decode()


class Query:
    """Appends the values of new records to a folder; its checkpoint says where it continues."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._output, self._checkpoint = f"{folder}/values", f"{folder}/checkpoint"

    def run(self, cluster: LocalCluster) -> None:
        """Until it has read what is there now."""
        records = self._spark.readStream.format("records").option("servers", cluster.bootstrap_servers).load()
        query = (
            records.writeStream.format("json")
            .option("checkpointLocation", self._checkpoint)
            .trigger(once=True)
            .start(self._output)
        )
        query.awaitTermination()

    def values(self) -> Sequence[str]:
        found = self._spark.read.schema("value STRING, offset LONG").json(self._output)
        return [row.value for row in found.orderBy("offset").collect()]


def transact(cluster: LocalCluster, count: int, first: int, *, commits: bool = True) -> None:
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "moved", "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for key, value in numbered(count, first):
        producer.produce(TOPIC, value, key, partition=0)
    (producer.commit_transaction if commits else producer.abort_transaction)(30)


@pytest.mark.timeout(900)
def test_a_streaming_query_moves_by_its_bootstrap_servers(
    sides: Sides, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = sides
    create_topic(source.bootstrap_servers, TOPIC)
    append(source, TOPIC, numbered(START + 10))
    move_log_starts(source, {TopicPartition(TOPIC, 0): START})
    transact(source, 7, START + 10)
    transact(source, 5, 1000, commits=False)
    query = Query(spark, tmp_path)
    query.run(source)
    properties = {
        "clusters": "keep, there",
        "keep.bootstrap.servers": source.bootstrap_servers,
        "there.bootstrap.servers": target.bootstrap_servers,
        "keep->there.enabled": "true",
        "keep->there.topics": r"relocated\..*",
        "keep->there.offsets.preserve": "true",
        "keep.consumer.isolation.level": "read_committed",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "emit.heartbeats.enabled": "false",
    }
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        transact(source, 6, START + 17)
        wanted = {TopicPartition(TOPIC, 0): end_offsets(source, [TOPIC])[TopicPartition(TOPIC, 0)]}
        await_value(
            lambda: end_offsets(target, [TOPIC]) == wanted,
            WAIT_S,
            lambda: f"not copied: {mirror.log_text()[-2000:]}",
        )
        query.run(target)
        mirror.send(signal.SIGTERM)
        mirror.wait(WAIT_S)
    query.run(source)  # nothing is new there, and nothing is read again
    expected = [value.decode() for _, value in numbered(START + 23)[START:] if value is not None]
    assert list(query.values()) == expected
