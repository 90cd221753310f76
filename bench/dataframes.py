"""CPU per million records of data frames: decoded beside confluent-kafka, in Spark beside its own connector.

`python -m bench.dataframes [--jars A.jar,B.jar]`: the jars are those of Spark's Kafka connector; without them
only the format `sparkmirror` is measured. A broker starts for it, whose CPU does not count.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import confluent_kafka as confluent
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.process_tree import ProcessTree
from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.dataframes.planning import OffsetRange
from sparkmirror.dataframes.read_options import read_options
from sparkmirror.dataframes.reading import Reading, read_range
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import PartitionReader

TOPICS: Final = {"1000 B": (1000, 300_000), "100 B": (100, 1_500_000)}
COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
ROUNDS: Final = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", default="")
    parser.add_argument("--servers", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.servers:
        measure_queries(arguments.servers, arguments.jars)
        return
    with TemporaryDirectory() as home:
        cluster = LocalCluster.start(ClusterSpec("frames"), Path(home) / "cluster")
        try:
            for name, (size, count) in TOPICS.items():
                fill(cluster.bootstrap_servers, topic_of(name), size, count)
            measure_decoding(cluster.bootstrap_servers)
            command = [sys.executable, "-m", "bench.dataframes", "--servers", cluster.bootstrap_servers]
            subprocess.run([*command, "--jars", arguments.jars], check=True)
        finally:
            cluster.stop()


def topic_of(name: str) -> str:
    return f"bench.{name.split(maxsplit=1)[0]}"


def fill(servers: str, topic: str, size: int, count: int) -> None:
    producer = confluent.Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    value = os.urandom(size - 10)
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, b"key %06d" % number, 0)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def measure_decoding(servers: str) -> None:
    for name, (_, count) in TOPICS.items():
        ways: dict[str, Callable[[str, str, int], int]] = {
            "sparkmirror": decode,
            "confluent-kafka": decode_with_confluent,
        }
        for way, read in ways.items():
            best = min(cpu_of(lambda: read(servers, topic_of(name), count)) for _ in range(ROUNDS))  # noqa: B023
            show(f"decode to Arrow, {name}", way, best, count)


def cpu_of(work: Callable[[], int]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def decode(servers: str, topic: str, count: int) -> int:
    options = read_options({"kafka.bootstrap.servers": servers, "subscribe": topic})
    reading = Reading(options.consumer, COLUMNS, fails_on_data_loss=True, timeout_s=60)
    wanted = OffsetRange(TopicPartition(topic, 0), 0, count)
    with closing(PartitionReader(options.consumer, options.consumer.partition_fetch_bytes_max)) as reader:
        return sum(found.num_rows for found in read_range(reading, wanted, reader))


def decode_with_confluent(servers: str, topic: str, count: int) -> int:
    consumer = confluent.Consumer({"bootstrap.servers": servers, "group.id": "bench"})
    consumer.assign([confluent.TopicPartition(topic, 0, 0)])
    rows = 0
    while rows < count:
        messages = consumer.consume(10_000, 10)
        pa.record_batch(
            {
                "key": pa.array([message.key() for message in messages], pa.binary()),
                "value": pa.array([message.value() for message in messages], pa.binary()),
                "topic": pa.array([message.topic() for message in messages]),
                "partition": pa.array([message.partition() for message in messages], pa.int32()),
                "offset": pa.array([message.offset() for message in messages], pa.int64()),
                "timestamp": pa.array([message.timestamp()[1] for message in messages]),
                "timestampType": pa.array([message.timestamp()[0] for message in messages], pa.int32()),
            }
        )
        rows += len(messages)
    consumer.close()
    return rows


def measure_queries(servers: str, jars: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", jars)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    tree = ProcessTree(os.getpid())
    for name, (_, count) in TOPICS.items():
        for kind in ("kafka", "sparkmirror") if jars else ("sparkmirror",):
            best = min(query_cpu(tree, frame(spark, kind, servers, topic_of(name))) for _ in range(ROUNDS))
            show(f"sum(length(value)), {name}", kind, best, count)
    spark.stop()


def frame(spark: SparkSession, kind: str, servers: str, topic: str) -> DataFrame:
    reader = spark.read.format(kind).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    return reader.load().selectExpr("sum(length(value))")


def query_cpu(tree: ProcessTree, query: DataFrame) -> float:
    tree.refresh()
    before = tree.cpu_s()
    query.collect()
    tree.refresh()
    return tree.cpu_s() - before


def show(what: str, way: str, cpu_s: float, count: int) -> None:
    each = cpu_s / count * 1e6
    print(f"{what:28} {way:16} {each:6.2f} CPU s per million records", flush=True)


if __name__ == "__main__":
    main()
