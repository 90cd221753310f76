"""CPU per million records of data frames: decoded beside confluent-kafka, in Spark beside its own connector.

`python -m bench.dataframes PART [--jars A.jar,B.jar]`: the jars are those of Spark's Kafka connector; without
them only the format `sparkmirror` is measured. Parts are `decode`, `queries`, `minute` and `micro-batches`. A
broker starts for each, whose CPU does not count. Sides take turns, and medians of the pairs are shown.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import confluent_kafka as confluent
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from bench import micro_batches
from bench.process_tree import ProcessTree
from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.dataframes.planning import OffsetRange
from sparkmirror.dataframes.range_reader import Reading, read_range
from sparkmirror.dataframes.read_options import read_options
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import PartitionReader

TOPICS: Final = {"1000 B": (1000, 300_000), "100 B": (100, 1_500_000)}
COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
LOG: Final = {"log of 1000 B": (1000, 2_000_000)}
FILLED: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = {
    "decode": TOPICS,
    "queries": TOPICS,
    "minute": LOG,
}
ROUNDS: Final = 3
FIRST_MS: Final = 1_700_000_000_000
LOG_HOURS: Final = 5
OURS: Final = "sparkmirror"
THEIRS: Final = "kafka"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["decode", *PARTS])
    parser.add_argument("--jars", default="")
    parser.add_argument("--servers", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.servers:
        PARTS[arguments.part](session(arguments.jars), arguments.servers, has_jars=bool(arguments.jars))
        return
    with TemporaryDirectory() as home:
        cluster = LocalCluster.start(ClusterSpec("frames"), Path(home) / "cluster")
        servers = cluster.bootstrap_servers
        try:
            for name, (size, count) in FILLED.get(arguments.part, {}).items():
                fill(servers, topic_of(name), size, count)
            if arguments.part == "decode":
                measure_decoding(servers)
                return
            command = [sys.executable, "-m", "bench.dataframes", arguments.part, "--servers", servers]
            subprocess.run([*command, "--jars", arguments.jars], check=True)
        finally:
            cluster.stop()


def session(jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.python.filterPushdown.enabled", "true")
    return builder.config("spark.jars", jars).config("spark.log.level", "ERROR").getOrCreate()


def topic_of(name: str) -> str:
    return f"bench.{name.replace(' ', '.')}"


def fill(servers: str, topic: str, size: int, count: int) -> None:
    """JSON records, evenly over some hours."""
    admin = AdminClient({"bootstrap.servers": servers})
    new = NewTopic(topic, 1, 1, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result()
    producer = confluent.Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 50,
            "batch.size": 100_000,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    for number in range(count):
        value = b'{"id":%d,"kind":%d,"pad":"' % (number, number % 50)
        value += b"x" * (size - 12 - len(value)) + b'"}'
        at_ms = FIRST_MS + number * LOG_HOURS * 3_600_000 // count
        while True:
            try:
                producer.produce(topic, value, b"key %06d" % number, 0, timestamp=at_ms)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def pairs(what: str, count: int, sides: Mapping[str, Callable[[], float]]) -> None:
    """Run each side in turns after one round that does not count, and show medians."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(ROUNDS + 1):
        for name, measure in sides.items():
            cpu_s = measure()
            if number:
                found[name].append(cpu_s / count * 1e6)
    first = next(iter(sides))
    for name, costs in found.items():
        ratio = median(other / own for other, own in zip(found[first], costs, strict=True))
        print(
            f"{what:30} {name:26} {median(costs):7.3f} CPU s per million records"
            f" ({min(costs):.3f} to {max(costs):.3f}); {first} takes {ratio:.2f} times as much",
            flush=True,
        )


# without Spark


def measure_decoding(servers: str) -> None:
    ways: dict[str, Callable[[str, str, int], int]] = {"confluent-kafka": confluent_decode, OURS: decode}
    for name, (_, count) in TOPICS.items():
        topic = topic_of(name)

        def cpu_of(way: str, topic: str = topic, count: int = count) -> float:
            began = time.process_time()
            assert ways[way](servers, topic, count) == count
            return time.process_time() - began

        pairs(f"decode to Arrow, {name}", count, {way: partial(cpu_of, way) for way in ways})


def decode(servers: str, topic: str, count: int) -> int:
    options = read_options({"kafka.bootstrap.servers": servers, "subscribe": topic})
    reading = Reading(options.consumer, COLUMNS, fails_on_data_loss=True, timeout_s=60)
    wanted = OffsetRange(TopicPartition(topic, 0), 0, count)
    with closing(PartitionReader(options.consumer, options.consumer.partition_fetch_bytes_max)) as reader:
        return sum(found.num_rows for found in read_range(reading, wanted, reader))


def confluent_decode(servers: str, topic: str, count: int) -> int:
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


# in Spark


def measure_queries(spark: SparkSession, servers: str, *, has_jars: bool) -> None:
    for name, (_, count) in TOPICS.items():
        opened = partial(frame, spark, servers=servers, topic=topic_of(name))
        frames = {kind: partial(opened, kind) for kind in kinds(has_jars)}
        pairs(f"JSON filter, {name}", count, timed(frames, ["count(*)"], JSON_FILTER))
        frames[f"{OURS}, schema of value"] = partial(opened, OURS, schema="value BINARY")
        pairs(f"sum(length(value)), {name}", count, timed(frames, ["sum(length(value))"]))


def measure_minute(spark: SparkSession, servers: str, *, has_jars: bool) -> None:
    """One minute by a filter on the column, and by the options that both formats have."""
    begin_ms = FIRST_MS + LOG_HOURS * 1_800_000
    options = {"startingTimestamp": str(begin_ms), "endingTimestamp": str(begin_ms + 60_000)}
    ((name, (_, count)),) = LOG.items()
    of_minute = (
        f"timestamp >= timestamp_millis({begin_ms}) AND timestamp < timestamp_millis({begin_ms + 60_000})"
    )
    opened = partial(frame, spark, servers=servers, topic=topic_of(name))
    by_options = {kind: partial(opened, kind, **options) for kind in kinds(has_jars)}
    by_filter = {kind: partial(opened, kind) for kind in kinds(has_jars)}
    by_filter[OURS] = partial(opened, OURS, pushdown="true")
    counted = ["count(*)", "sum(length(value))"]
    for frames in (by_options, by_filter):
        for made in frames.values():
            found = made().where(of_minute).count()
            assert found in range(count // (LOG_HOURS * 60), count // (LOG_HOURS * 60) + 2), found
    pairs("a minute, by options", count, timed(by_options, counted))
    pairs("a minute, filtered", count, timed(by_filter, counted, of_minute))


def measure_micro_batches(spark: SparkSession, servers: str, *, has_jars: bool) -> None:
    micro_batches.measure(spark, servers, kinds(has_jars))


def kinds(has_jars: bool) -> list[str]:
    return [THEIRS, OURS] if has_jars else [OURS]


def frame(
    spark: SparkSession, kind: str, servers: str, topic: str, schema: str = "", **options: str
) -> DataFrame:
    reader = spark.read.format(kind).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    return (reader.schema(schema) if schema else reader).options(**options).load()


def timed(
    frames: Mapping[str, Callable[[], DataFrame]], chosen: Sequence[str], where: str = "true"
) -> dict[str, Callable[[], float]]:
    """The CPU of a query on each frame, which is opened each time: Spark keeps what a shuffle has read."""
    tree = ProcessTree(os.getpid())

    def cpu_s(opened: Callable[[], DataFrame]) -> float:
        tree.refresh()
        before = tree.cpu_s()
        opened().where(where).selectExpr(*chosen).collect()
        tree.refresh()
        return tree.cpu_s() - before

    return {name: partial(cpu_s, opened) for name, opened in frames.items()}


JSON_FILTER: Final = "get_json_object(CAST(value AS STRING), '$.kind') = '7'"
PARTS: Final[Mapping[str, Callable[..., None]]] = {
    "queries": measure_queries,
    "minute": measure_minute,
    "micro-batches": measure_micro_batches,
}

if __name__ == "__main__":
    main()
