"""Measures micro-batches of data frames beside Spark's own connector: 100 records of 1 KB a second."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Final

import confluent_kafka as confluent
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

RATE: Final = 100
BATCHES: Final = 25
SECONDS_MAX: Final = 60
ROUNDS: Final = 1
LEFT_OUT: Final = 5
"""The first micro-batches, in which Java is still being compiled."""
SINKS: Final = {
    "kafka": ("noop", "kafka"),
    "sparkmirror": ("noop", "sparkmirror", "sparkmirror, exactly once"),
}


def measure(spark: SparkSession, servers: str, kinds: Sequence[str]) -> None:
    """Sides take turns, after a round that does not count."""
    for number in range(ROUNDS + 1):
        for kind in kinds:
            for sink in SINKS[kind]:
                name = f"{kind}.{sink.replace(', ', '.').replace(' ', '.')}.{number}"
                took = durations(spark, servers, kind, sink, name, BATCHES if number else LEFT_OUT)
                if number:
                    print(
                        f"micro-batches {kind:12} to {sink:26} n {len(took):4} p50 {median(took):6.0f} ms"
                        f" p90 {quantiles(took, n=10)[8]:6.0f} ms",
                        flush=True,
                    )


def durations(spark: SparkSession, servers: str, kind: str, sink: str, name: str, count: int) -> list[int]:
    """Return `triggerExecution` of each of so many micro-batches, in ms."""
    source, target = f"in.{name}", f"out.{name}"
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, 2, 1) for topic in (source, target)]).values():
        made.result()
    reader = spark.readStream.format(kind).option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = rows.select("key", "value").writeStream.format(sink.partition(",")[0])
    if sink != "noop":
        writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target)
    if sink.endswith("exactly once"):
        writer = writer.option("transactional.id.prefix", name)
    with TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint, producing(servers, source):
        query = writer.option("checkpointLocation", str(Path(checkpoint) / "query")).start()
        deadline = time.monotonic() + SECONDS_MAX
        while len(found := [each for each in query.recentProgress if each.numInputRows]) < LEFT_OUT + count:
            if time.monotonic() > deadline or query.exception() is not None:
                break
            time.sleep(0.5)
        query.stop()
    if query.exception() is not None:
        raise RuntimeError(str(query.exception()))
    return [each.durationMs["triggerExecution"] for each in found[LEFT_OUT:]]


@contextmanager
def producing(servers: str, topic: str) -> Iterator[None]:
    stopped = threading.Event()

    def produce() -> None:
        producer = confluent.Producer({"bootstrap.servers": servers, "linger.ms": 0})
        number = 0
        while not stopped.wait(1 / RATE):
            producer.produce(topic, b"x" * 1000, b"key %d" % number, number % 2)
            producer.poll(0)
            number += 1
        producer.flush(10)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
